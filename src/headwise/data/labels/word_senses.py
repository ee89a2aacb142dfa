"""Reads ambiguous words in sentences, each occurrence with its sense: a table of four columns.

    bank<TAB>bank_(geography)<TAB>4<TAB>they sat on the bank of the river

The columns are the word, its sense, its index among the words of the sentence (from 0), and the
sentence, which is split at spaces. An occurrence whose spelling differs from the word (a wrong
index, or a form such as "banks") is left out and counted, because another spelling could reveal the
sense; the *sentence* should.

CoarseWSD-20 (Loureiro et al. 2021) is `known:coarsewsd-20/train` and `/test`. Tested against: the
rows written to a file, every defect.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from headwise.data.known.corpora import find_known_text
from headwise.data.labels.labelled_files import numbered_lines
from headwise.data.text_lines import find_text_file
from headwise.errors import DataError, UsageError

KNOWN = "known:"
COLUMNS = 4


class Occurrence(NamedTuple):
    """A word in its sentence, and its sense there."""

    word: str
    sense: str
    position: int
    sentence: tuple[str, ...]


@dataclass(frozen=True)
class Occurrences:
    """The occurrences of a file; `num_left_out` were spelled differently from their word."""

    found: tuple[Occurrence, ...]
    num_left_out: int

    @property
    def words(self) -> tuple[str, ...]:
        """In the order of the file."""
        return tuple(dict.fromkeys(one.word for one in self.found))


def read_senses(source: str, *, words: tuple[str, ...] = ()) -> Occurrences:
    """The occurrences of a file, or of known:NAME; only those of `words`, if any are named."""
    path = _find(source)
    rows = list(_rows(path))
    there = tuple(dict.fromkeys(one.word for one in rows))
    if missing := [word for word in words if word not in there]:
        raise UsageError(
            f"{source} has no word {missing[0]!r}; choose one of: {', '.join(there)[:400]}",
            f"{source} 中没有词 {missing[0]!r}；可选：{'、'.join(there)[:400]}",
        )
    asked = [one for one in rows if not words or one.word in words]
    kept = tuple(one for one in asked if one.sentence[one.position].lower() == one.word.lower())
    if not kept:
        raise DataError(
            "has no occurrence written as its word; each line is word, sense, position (from 0), "
            "sentence, with tabs between",
            "没有按原词书写的出现；每行应为：词、义项、位置（从 0 数起）、句子，以制表符分隔",
            file=path,
        )
    return Occurrences(kept, len(asked) - len(kept))


def _find(source: str) -> Path:
    if not source.startswith(KNOWN):
        return find_text_file(Path(source))
    known = find_known_text(source.removeprefix(KNOWN), "en")
    if known.form != "senses":
        raise UsageError(
            f"{source} has no senses; give known:coarsewsd-20/train, or a file of four columns",
            f"{source} 没有义项；请给出 known:coarsewsd-20/train，或四列的文件",
        )
    return known.path


def _rows(path: Path) -> Iterator[Occurrence]:
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) != COLUMNS or not cells[0] or not cells[1]:
            raise _wrong(f"has {len(cells)} column(s)", f"有 {len(cells)} 列", path, number)
        words = tuple(cells[3].split())
        if not cells[2].isdecimal() or len(cells[2]) > 6 or int(cells[2]) >= len(words):
            raise _wrong(
                f"has {len(words)} words and the position {cells[2]!r:.20}",
                f"有 {len(words)} 个词，位置为 {cells[2]!r:.20}",
                path,
                number,
            )
        yield Occurrence(cells[0], cells[1], int(cells[2]), words)


def _wrong(en: str, zh: str, path: Path, number: int) -> DataError:
    return DataError(
        f"{en}; needed are word, sense, the word's position among the words (from 0) and the "
        "sentence, with tabs between",
        f"{zh}；需要：词、义项、该词在句中的位置（从 0 数起）、句子，以制表符分隔",
        file=path,
        line=number,
    )
