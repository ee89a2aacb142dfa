"""Detects whether the first line of a table is a header: names of columns instead of a row.

    en<TAB>de      source<TAB>target      English<TAB>German      text<TAB>label

Only exact names count (apart from case and spaces), and only if every column that is read has one.
A sentence is never taken for a header; a header with other words is not recognised. A detected
header is reported, not skipped: the recipe must say `header: true`.

Tested against: names and sentences by hand.
"""

from collections.abc import Sequence

_LANGUAGES = {
    "de": {"german", "deutsch"},
    "en": {"english", "englisch"},
    "es": {"spanish", "español"},
    "fr": {"french", "français"},
    "ja": {"japanese", "日本語"},
    "zh": {"chinese", "chinesisch", "中文", "汉语"},
}
_SOURCES = frozenset({"source", "src"})
_TARGETS = frozenset({"target", "tgt", "trg"})
_TEXTS = frozenset({"text", "sentence"})
_LABELS = frozenset({"label", "class"})


def heads_pairs(source_cell: str, target_cell: str, *, source: str, target: str) -> bool:
    """Whether two cells name a source and a target, by language or by role."""
    return _is_one(source_cell, _SOURCES | _names(source)) and _is_one(
        target_cell, _TARGETS | _names(target)
    )


def heads_labels(text_cell: str, label_cell: str) -> bool:
    return _is_one(text_cell, _TEXTS) and _is_one(label_cell, _LABELS)


def heads_texts(cell: str, *, language: str) -> bool:
    return _is_one(cell, _TEXTS | _names(language))


def pick_cells(line: str | None, columns: Sequence[int]) -> list[str] | None:
    """The chosen cells of a tab-separated line; None if the line has too few."""
    cells = [] if line is None else line.split("\t")
    return [cells[column] for column in columns] if max(columns) < len(cells) else None


def _names(language: str) -> frozenset[str]:
    base = language.casefold().split("-")[0]
    return frozenset({language.casefold(), base, *_LANGUAGES.get(base, ())})


def _is_one(cell: str, names: frozenset[str]) -> bool:
    return cell.strip().casefold() in names
