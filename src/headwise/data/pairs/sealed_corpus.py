"""Checks a corpus that was written with a manifest, such as a distilled one, before it is read.

`headwise distil` writes two line-aligned files beside a description and a list of checksums:

    distilled/  train.en  train.de  distilled.json  MANIFEST.json

A recipe reads it as `data.train: distilled/train`. A changed line would shift all later pairs or
mix another text into the training, and nothing would show it; so size, SHA-256 and number of lines
are compared first. Each state of the files is checked once in a process.

Tested with every kind of change: a letter, a missing line, a missing file, another manifest.
"""

import contextlib
from pathlib import Path
from typing import Any

from headwise.errors import CheckpointError, DataError
from headwise.storage import MANIFEST, read_manifest, read_sealed_json, verify_directory

KIND = "distilled corpus"
"""Of the directory, in its manifest."""
PREFIX = "train"
"""What the names of the two text files begin with."""
DESCRIPTION = "distilled.json"
REQUIRED = ("languages", "pairs")
"""Entries of the description that are needed to read the corpus."""

_checked: set[tuple[Any, ...]] = set()
"""The states of files that were found to be right in this process."""


def check_sealed_corpus(prefix: Path) -> None:
    """Raise if `prefix` names the files of a sealed corpus, and they are not those written."""
    directory = prefix.parent
    if prefix.name != PREFIX or not _is_sealed(directory):
        return
    state = _state_of(directory)
    if state in _checked:
        return
    try:
        verify_directory(directory, kind=KIND)
    except CheckpointError as error:
        raise _explain(directory, error) from error
    _checked.add(state)


def read_description(directory: Path) -> dict[str, Any]:
    """What `distilled.json` says; its own checksum is verified."""
    return read_sealed_json(directory / DESCRIPTION, REQUIRED)


def _is_sealed(directory: Path) -> bool:
    if (directory / DESCRIPTION).is_file():
        return True
    with contextlib.suppress(CheckpointError):
        return bool(read_manifest(directory)["kind"] == KIND)
    return False


def _state_of(directory: Path) -> tuple[Any, ...]:
    files = sorted(path for path in directory.iterdir() if path.is_file())
    status = [(path.name, path.stat()) for path in files]
    return (
        str(directory.resolve()),
        *((name, one.st_size, one.st_mtime_ns) for name, one in status),
    )


def _explain(directory: Path, error: CheckpointError) -> DataError:
    """What changed, in lines where lines are missing or added, and what can be done."""
    path = Path(error.file) if error.file is not None else directory / MANIFEST
    en, zh = "is not the file that was distilled", "不是蒸馏时写下的文件"
    if not path.is_file():
        en, zh = "is missing", "缺失"
    elif not _is_listed(directory, path.name):
        en, zh = "is not part of the distilled corpus", "不属于这份蒸馏语料"
    elif path.stem == PREFIX and (counts := _count_lines(directory, path)) is not None:
        en = f"has {counts[0]:,} lines, {counts[1]:,} were distilled"
        zh = f"有 {counts[0]:,} 行，蒸馏时为 {counts[1]:,} 行"
    return DataError(
        f"{en}; distil again into another directory or use another copy; if the change is meant, "
        "copy the two text files to a directory of their own and name those",
        f"{zh}；请重新蒸馏到另一目录，或换用另一份副本；"
        "如果确实要改动，请把两个文本文件复制到单独的目录，再使用它们",
        file=path,
    )


def _is_listed(directory: Path, name: str) -> bool:
    try:
        return name == MANIFEST or name in read_manifest(directory)["files"]
    except CheckpointError:
        return True  # the manifest itself is what is wrong


def _count_lines(directory: Path, path: Path) -> tuple[int, int] | None:
    """Lines of a text file and lines that were written; None if they are equal or not known."""
    try:
        written = int(read_description(directory)["pairs"])
    except (CheckpointError, TypeError, ValueError):
        return None
    with path.open("rb") as file:
        found = sum(1 for _ in file)
    return None if found == written else (found, written)


def corpora_behind(prefix: Path) -> list[Any]:
    """The corpora that a sealed one was made from, as a recipe names them; [] for any other."""
    if prefix.name != PREFIX or not (prefix.parent / DESCRIPTION).is_file():
        return []
    with contextlib.suppress(CheckpointError):
        found = read_description(prefix.parent).get("corpora")
        return found if isinstance(found, list) else []
    return []
