"""Writes ARPA files (`arpa.py` explains the format, and reads them).

A model of characters says so in a comment that other programs skip, so that its text can be cut in
the same way after reading:

    # units: characters
    \\data\\ …               a space is written ▁, other invisible characters by their code: U+3000

Tested: a file is read back as it was written; a model that cannot be written leaves no file.
"""

import gzip
import io
import lzma
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from headwise.errors import UsageError
from headwise.models.ngram.arpa import LOG10, SPACE, UNITS_REMARK, Units
from headwise.models.ngram.tables import NgramTables
from headwise.storage import publish_file, refuse_existing
from headwise.text.tokenizer import PAD, SPECIAL_PIECES

NEVER = -99.0
"""log₁₀ of what is never predicted, the beginning of a sentence, by custom."""
_SEPARATOR = re.compile(r"[\x00\t\n\r ]")
_LINES = 1 << 16


def write_arpa(
    file: io.TextIOBase, tables: NgramTables, words: Sequence[str], *, units: Units = "words"
) -> None:
    """Write a model; `words` are the names of the ids from 4 on (with `units`, characters)."""
    if not tables.falls_back:
        raise UsageError(
            "a model with add_k or maximum_likelihood cannot be written as ARPA: there an unseen "
            "word's probability comes from a shorter context, here it does not; use another "
            "smoothing",
            "add_k 与 maximum_likelihood 模型不能写成 ARPA："
            "在 ARPA 中未见词的概率来自更短的上文，而这里不是；请换用其他平滑",
        )
    if units == "characters":
        words = [name_of_character(one) for one in words]
        file.write(f"{UNITS_REMARK}\n\n")
    names = np.array([*SPECIAL_PIECES, *words], dtype=object)
    if bad := next((name for name in words if not name or _SEPARATOR.search(name)), None):
        raise UsageError(
            f"the token {bad!r} cannot stand in an ARPA file, which separates words by spaces; use "
            "text.kind=words",
            f"词元 {bad!r} 不能写入以空格分隔词语的 ARPA 文件；请用 text.kind=words",
        )
    file.write("\\data\\\n")
    for number, level in enumerate(tables.levels, start=1):
        file.write(f"ngram {number}={len(level.keys) - (number == 1)}\n")  # padding is no word
    texts = names
    for number, level in enumerate(tables.levels, start=1):
        file.write(f"\n\\{number}-grams:\n")
        if number > 1:
            contexts, last = np.divmod(level.keys, tables.vocabulary)
            texts = texts[contexts] + " " + names[last]
        probabilities = (
            np.where(np.isneginf(level.probabilities), NEVER * LOG10, level.probabilities) / LOG10
        )
        weights = level.weights / LOG10
        rows = zip(probabilities.tolist(), texts.tolist(), weights.tolist(), strict=True)
        if number == 1:
            real = (row for token, row in enumerate(rows) if token != PAD)
            rows = real  # type: ignore[assignment]
        if number < tables.order:
            lines = (f"{p:.7g}\t{name}\t{w:.7g}\n" for p, name, w in rows)
        else:
            lines = (f"{p:.7g}\t{name}\n" for p, name, _ in rows)
        while block := list(islice(lines, _LINES)):
            file.writelines(block)
    file.write("\n\\end\\\n")


def name_of_character(character: str) -> str:
    """▁ for a space, a code for what looks like a space (and for ▁ itself), else the character."""
    if character == " ":
        return SPACE
    if character == SPACE or character.isspace() or not character.isprintable():
        return f"U+{ord(character):04X}"
    return character


def save_arpa(
    path: Path, tables: NgramTables, words: Sequence[str], *, units: Units = "words"
) -> None:
    """Write a file, whole or not at all, compressed if its name ends in .gz or .xz.

    A file that exists is not overwritten.
    """
    refuse_existing(path)
    with publish_file(path) as temporary, _open(temporary, path.suffix) as file:
        write_arpa(file, tables, words, units=units)


def _open(path: Path, packing: str) -> io.TextIOWrapper:
    match packing:
        case ".gz":
            return gzip.open(path, "wt", encoding="utf-8", newline="\n")
        case ".xz":
            return lzma.open(path, "wt", encoding="utf-8", newline="\n")
        case _:
            return path.open("w", encoding="utf-8", newline="\n")
