"""Checks that every file named under `data` in a recipe exists, before any of them is read.

All missing files are reported in one error, each with its key in the recipe. This helps when
someone sets `data.train` and forgets `data.valid`. The check also warns if the first line of a
table looks like column names (data/header_detection.py), since they would be learnt as text.

Tested through `headwise train --check`, for recipes of several tasks.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headwise.data.header_detection import heads_labels, heads_pairs, heads_texts, pick_cells
from headwise.data.known.corpora import find_known_labelled, find_known_text
from headwise.data.labels.choices import AlignedTags, KnownLabels, LabelTable
from headwise.data.pairs.choices import (
    FilesCorpus,
    KnownCorpus,
    PocketCorpus,
    TsvCorpus,
    choose_columns,
    files_of,
)
from headwise.data.splits import Part
from headwise.data.text.choices import KnownTextCorpus, PocketText, TextColumn
from headwise.data.text_lines import find_text_file, read_lines
from headwise.errors import DataError
from headwise.language import say
from headwise.tasks.any_recipe import AnyRecipe

logger = logging.getLogger(__name__)

PARTS: tuple[Part, ...] = ("train", "valid", "test")


def check_named_files(recipe: AnyRecipe) -> None:
    """Refuse a recipe whose files are not there, and warn of headings that would be learnt."""
    check_corpora(recipe.corpora_settings)


def check_corpora(data: Any) -> None:
    """The same for the section `data` alone."""
    missing: list[DataError] = []
    for part, corpus, files in _look(data):
        if isinstance(files, DataError):
            missing.append(_name_key(part, files))
        elif files and _has_heading(corpus, files[0], data):
            _warn_of_heading(part, files[0])
    if len(missing) == 1:
        raise missing[0]
    if missing:
        raise DataError(
            f"{len(missing)} of the recipe's corpora cannot be read:\n"
            + "\n".join(f"  - {one.en}" for one in missing),
            f"配方中有 {len(missing)} 个语料无法读取：\n"
            + "\n".join(f"  - {one.zh}" for one in missing),
        )


def are_files_missing(data: Any) -> bool:
    """Whether `check_corpora` would refuse the section; nobody is warned."""
    return any(isinstance(files, DataError) for _, _, files in _look(data))


def _look(data: Any) -> Iterator[tuple[str, Any, list[Path] | DataError]]:
    """Each part, each of its corpora, and the corpus's files or why they cannot be read."""
    for part in PARTS:
        for corpus in _corpora(data, part):
            try:
                yield part, corpus, _find(corpus, data, part)
            except DataError as error:
                yield part, corpus, error


def _corpora(data: Any, part: str) -> Sequence[Any]:
    """What a recipe names for a part: several corpora, one, or the path of a file."""
    given = getattr(data, part, None)
    if isinstance(given, list | tuple):
        return given
    return () if given is None else (given,)


def _find(corpus: Any, data: Any, part: Part) -> list[Path]:
    """The files of a corpus, of whatever task; each exists."""
    match corpus:
        case FilesCorpus() | TsvCorpus() | KnownCorpus() | PocketCorpus():
            return files_of(data, corpus, part)
        case KnownTextCorpus(name=name):
            return [find_known_text(name, data.language).path]
        case KnownLabels(name=name):
            return [find_known_labelled(name, data.language).path]
        case AlignedTags():
            return [find_text_file(corpus.path), find_text_file(corpus.tags_path)]
        case PocketText():
            return []
        case str() | Path():
            return [find_text_file(Path(corpus))]
        case _:
            return [find_text_file(corpus.path)]


def _name_key(part: str, error: DataError) -> DataError:
    place = "" if error.file is None else f"{error.file}: "
    other = ("", "")
    if part != "train":
        other = (f", or leave it out with data.{part}=null", f"，或以 data.{part}=null 略去")
    return DataError(
        f"data.{part}: {place}{error.en}{other[0]}", f"data.{part}：{place}{error.zh}{other[1]}"
    )


def _has_heading(corpus: Any, path: Path, data: Any) -> bool:
    match corpus:
        case TsvCorpus(header=False):
            if data.directions:
                data = data.one_way((corpus.directions or data.directions)[0])
            chosen = choose_columns(
                corpus.columns or {data.source: 0, data.target: 1}, (), data.source, data.target
            )
            cells = pick_cells(_first_line(path), (chosen.source, chosen.target))
            return cells is not None and heads_pairs(*cells, source=data.source, target=data.target)
        case LabelTable(header=False):
            cells = pick_cells(_first_line(path), (corpus.text_column, corpus.label_column))
            return cells is not None and heads_labels(*cells)
        case TextColumn(header=False, skip=0):
            cells = pick_cells(_first_line(path), (corpus.column,))
            return cells is not None and heads_texts(*cells, language=data.language)
    return False


def _first_line(path: Path) -> str | None:
    return next(read_lines(path), None)


def _warn_of_heading(part: str, path: Path) -> None:
    change = f"data.{part}='{{path: {path}, header: true}}'"
    logger.warning(
        "%s",
        say(
            f"{path}:1: the line looks like names of columns, but is read as the first row; if it "
            f"is not, write {change}",
            f"{path}:1：该行像是列名，却被当作第一行数据；如果不是数据，请写 {change}",
        ),
    )
