"""Reads ARPA files: n-gram models as text, the format that KenLM, SRILM and others exchange.

    \\data\\
    ngram 1=5
    \\1-grams:
    -0.7        the     -0.3        log₁₀ p(the), the word, log₁₀ of its weight as a context
    \\end\\

Words are separated by tabs and plain spaces, nothing else (a word may hold U+00A0 or U+3000). Text
before \\data\\ is a comment; the comment `# units: characters` says that a text is cut into
characters, not at spaces (`arpa_writing.py`).

The reader checks that there are as many n-grams as announced, that numbers are logarithms of
probabilities, that words are in the vocabulary and contexts are listed, and that nothing occurs
twice. An error names file and line. A back-off weight must not make probabilities larger than 1
(`weight_check.py`). An unknown word without a probability of its own gets KenLM's 10⁻¹⁰⁰.

Tested against: back-off worked out by hand over three orders; our own tables written and read;
every kind of damage.
"""

import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headwise.data.text_lines import find_text_file, read_lines
from headwise.errors import DataError, UsageError
from headwise.models.ngram.lookup import ABSENT, KeyIndex
from headwise.models.ngram.tables import Level, NgramTables
from headwise.models.ngram.weight_check import find_heavy_weight
from headwise.text.tokenizer import BOS, EOS, PAD, SPECIAL_PIECES, UNKNOWN

LOG10 = math.log(10.0)
UNKNOWN_LOG10 = -100.0
UNITS_REMARK = "# units: characters"
"""KenLM passes over lines before \\data\\ that begin with #."""
SPACE = "▁"
MAX_WEIGHT = 6.01
"""log₁₀ of the largest possible weight: 1 / SMALLEST_REST, and rounding."""
_LOWEST = -1e30

Units = Literal["words", "characters"]


@dataclass(frozen=True)
class ArpaModel:
    """What a file holds: the names of the ids from 4 on, the tables, and how text is cut."""

    words: list[str]
    tables: NgramTables
    units: Units


def is_arpa(path: Path) -> bool:
    """By its name: model.arpa, model.arpa.gz, model.arpa.xz."""
    return path.name.removesuffix(".gz").removesuffix(".xz").endswith(".arpa")


def require_arpa(path: Path) -> None:
    """Refuse another name for a file that is to be written."""
    if not is_arpa(path):
        raise UsageError(
            f"{path} is not the name of an ARPA file; let it end in .arpa, .arpa.gz or .arpa.xz",
            f"{path} 不是 ARPA 文件名；请以 .arpa、.arpa.gz 或 .arpa.xz 结尾",
        )


class _LineReader:
    """Lines with their numbers, empty ones left out."""

    def __init__(self, path: Path) -> None:
        self.path, self.number = path, 0
        self._lines = read_lines(path)

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.number += 1
            if line is None:
                raise self.error("is too long for an ARPA file", "过长，不是 ARPA 文件")
            if line.strip():
                yield line

    def error(self, en: str, zh: str, line: int | None = None) -> DataError:
        return DataError(
            f"{en}; mend the file or write it anew",
            f"{zh}；请修复或重新生成该文件",
            file=self.path,
            line=line or self.number,
        )


def read_arpa(path: Path) -> ArpaModel:
    """Read a file, plain or packed."""
    reader = _LineReader(find_text_file(path))
    lines = iter(reader)
    units, announced = _read_head(reader, lines)
    names, level, numbers = _read_words(
        reader, _section(reader, lines, announced, 1), highest=len(announced) == 1
    )
    ids = {name: number for number, name in enumerate([*SPECIAL_PIECES, *names])}
    levels, indexes = [level], [KeyIndex(level.keys)]
    for order in range(2, len(announced) + 1):
        rows = _section(reader, lines, announced, order)
        listed = _read_rows(reader, rows, order, ids)
        contexts = _find_contexts(reader, listed, indexes)
        _check_weights(reader, levels, numbers, listed, contexts)
        level, numbers = _as_level(
            reader, listed, contexts, len(names), highest=order == len(announced)
        )
        levels.append(level)
        indexes.append(KeyIndex(level.keys))
    if units == "characters":
        names = [_character(reader, name) for name in names]
    return ArpaModel(names, NgramTables(tuple(levels), falls_back=True, floor=0.0), units)


def _character(reader: _LineReader, name: str) -> str:
    """The character of a name: itself, ▁ for a space, a code such as U+3000 for other spaces."""
    found = name.replace(SPACE, " ")
    if re.fullmatch(r"U\+[0-9A-F]{4,6}", name) and (number := int(name[2:], 16)) <= sys.maxunicode:
        found = chr(number)
    if len(found) != 1:
        raise reader.error(
            f"{name!r:.60} is not a character, though the file says `{UNITS_REMARK}`",
            f"{name!r:.60} 不是单个字符，而文件声明 `{UNITS_REMARK}`",
        )
    return found


def _read_head(reader: _LineReader, lines: Iterator[str]) -> tuple[Units, list[int]]:
    """How text is cut, and how many n-grams of each order are announced."""
    units: Units = "words"
    for line in lines:
        if line.strip() == "\\data\\":
            break
        if line.strip() == UNITS_REMARK:
            units = "characters"
    else:
        raise reader.error(
            "has no line \\data\\, with which an ARPA file begins",
            "没有 ARPA 文件开头的 \\data\\ 行",
        )
    announced: list[int] = []
    for line in lines:
        if line.strip() == "\\1-grams:":
            break
        found = re.fullmatch(r"ngram\s+(\d{1,2})\s*=\s*(\d{1,12})", line.strip())
        if found is None or int(found[1]) != len(announced) + 1:
            raise reader.error(
                f"{line[:60]!r} stands where `ngram {len(announced) + 1}=COUNT` or \\1-grams: is "
                "expected",
                f"此处应为 `ngram {len(announced) + 1}=数目` 或 \\1-grams:，而不是 {line[:60]!r}",
            )
        announced.append(int(found[2]))
    if not announced:
        raise reader.error("announces no n-grams", "没有声明任何 n 元语法")
    return units, announced


def _section(
    reader: _LineReader, lines: Iterator[str], announced: Sequence[int], order: int
) -> Iterator[tuple[int, float, list[str], float]]:
    """Line number, log₁₀ probability, words and log₁₀ weight of each n-gram.

    Checks that there are as many as announced.
    """
    following = f"\\{order + 1}-grams:" if order < len(announced) else "\\end\\"
    count = 0
    for count, line in enumerate(lines):
        if line.startswith("\\"):
            if line.strip() != following or count != announced[order - 1]:
                raise reader.error(
                    f"{announced[order - 1]:,} {order}-grams are announced, {count:,} stand before "
                    f"{line.strip()[:20]} (then {following} is expected)",
                    f"声明有 {announced[order - 1]:,} 个 {order} 元语法，"
                    f"而 {line.strip()[:20]} 之前有 {count:,} 个（其后应为 {following}）",
                )
            return
        if count == announced[order - 1]:
            raise reader.error(
                f"{announced[order - 1]:,} {order}-grams are announced, here stands one more",
                f"声明有 {announced[order - 1]:,} 个 {order} 元语法，此处多出一个",
            )
        yield _parse(reader, line, order)
    raise reader.error(
        f"ends without {following}: it is cut short", f"结尾没有 {following}：文件不完整"
    )


def _parse(reader: _LineReader, line: str, order: int) -> tuple[int, float, list[str], float]:
    cells = [cell for cell in line.replace("\t", " ").split(" ") if cell]
    try:
        probability = float(cells[0])
        weight = float(cells[order + 1]) if len(cells) == order + 2 else 0.0
    except ValueError:
        probability = weight = math.nan
    if len(cells) not in (order + 1, order + 2) or not (
        probability <= 0.0 and -math.inf < weight <= MAX_WEIGHT
    ):
        raise reader.error(
            f"{line[:60]!r} is not a {order}-gram: a logarithm of at most 0, {order} word(s), "
            f"perhaps a weight of at most {MAX_WEIGHT}",
            f"{line[:60]!r} 不是 {order} 元语法：应为不大于 0 的对数、{order} 个词，"
            f"以及可有可无、不大于 {MAX_WEIGHT} 的权重",
        )
    probability = probability if probability >= _LOWEST else -math.inf
    return reader.number, probability, cells[1 : order + 1], max(weight, _LOWEST)


def _read_words(
    reader: _LineReader, rows: Iterator[tuple[int, float, list[str], float]], *, highest: bool
) -> tuple[list[str], Level, NDArray[np.int64]]:
    """Names, the single words, and the line of each id."""
    found: dict[str, tuple[float, float, int]] = {}
    for number, probability, (word,), weight in rows:
        if word in found:
            raise reader.error(
                f"the word {word!r:.60} stands twice", f"词 {word!r:.60} 出现了两次", number
            )
        found[word] = (probability, weight, number)
    for special in (BOS, EOS):
        if SPECIAL_PIECES[special] not in found:
            raise reader.error(
                f"has no {SPECIAL_PIECES[special]} among its words",
                f"词表中没有 {SPECIAL_PIECES[special]}",
            )
    found.setdefault(SPECIAL_PIECES[UNKNOWN], found.pop("<UNK>", (UNKNOWN_LOG10, 0.0, 0)))
    names = [name for name in found if name not in SPECIAL_PIECES]
    ordered = [found.get(name, (-np.inf, 0.0, 0)) for name in [*SPECIAL_PIECES, *names]]
    logarithms = np.array([values[:2] for values in ordered]) * LOG10
    logarithms[[PAD, BOS], 0] = -np.inf
    logarithms[:, 1] *= not highest
    values = logarithms.astype(np.float32)
    level = Level(np.arange(len(values), dtype=np.int64), values[:, 0].copy(), values[:, 1].copy())
    return names, level, np.array([values[2] for values in ordered])


@dataclass(frozen=True)
class _Listed:
    """The n-grams of one order as they stand in the file."""

    numbers: NDArray[np.int64]
    table: NDArray[np.int64]
    values: NDArray[np.float64]


def _read_rows(
    reader: _LineReader,
    rows: Iterator[tuple[int, float, list[str], float]],
    order: int,
    ids: dict[str, int],
) -> _Listed:
    numbers: list[int] = []
    tokens: list[int] = []
    values: list[tuple[float, float]] = []
    for number, probability, words, weight in rows:
        for word in words:
            token = ids.get(word)
            if token is None:
                raise reader.error(
                    f"the word {word!r:.60} is not among the 1-grams",
                    f"词 {word!r:.60} 不在 1 元语法之中",
                    number,
                )
            tokens.append(token)
        numbers.append(number)
        values.append((probability, weight))
    return _Listed(
        np.array(numbers, dtype=np.int64),
        np.array(tokens, dtype=np.int64).reshape(-1, order),
        np.array(values, dtype=np.float64).reshape(-1, 2),
    )


def _find_contexts(
    reader: _LineReader, listed: _Listed, indexes: Sequence[KeyIndex]
) -> NDArray[np.int64]:
    """The id of every n-gram without its last word, in the order below."""
    order = listed.table.shape[1]
    contexts = listed.table[:, 0].copy()
    for length in range(2, order):
        found = indexes[length - 1].find(
            contexts * len(indexes[0].keys) + listed.table[:, length - 1]
        )
        if (found == ABSENT).any():
            at = int(np.argmax(found == ABSENT))
            raise reader.error(
                f"the first {length} words of this {order}-gram are not among the {length}-grams",
                f"此 {order} 元语法的前 {length} 个词不在 {length} 元语法之中",
                int(listed.numbers[at]),
            )
        contexts = found.astype(np.int64)
    return contexts


def _check_weights(
    reader: _LineReader,
    levels: Sequence[Level],
    numbers: NDArray[np.int64],
    listed: _Listed,
    contexts: NDArray[np.int64],
) -> None:
    found = find_heavy_weight(levels, listed.table, contexts)
    if found is not None:
        given, allowed = found.given / LOG10, found.allowed / LOG10
        raise reader.error(
            f"the weight {given:.5g} gives words probabilities of more than 1; here it may be at "
            f"most {allowed:.5g}",
            f"权重 {given:.5g} 会使词的概率大于 1；此处至多为 {allowed:.5g}",
            int(numbers[found.context]),
        )


def _as_level(
    reader: _LineReader,
    listed: _Listed,
    contexts: NDArray[np.int64],
    num_names: int,
    *,
    highest: bool,
) -> tuple[Level, NDArray[np.int64]]:
    """Sorted by key, with the line of each."""
    order = listed.table.shape[1]
    keys = contexts * (num_names + len(SPECIAL_PIECES)) + listed.table[:, -1]
    ranks = np.argsort(keys, kind="stable")
    keys, numbers = keys[ranks], listed.numbers[ranks]
    if len(keys) and (twice := np.flatnonzero(keys[1:] == keys[:-1])).size:
        raise reader.error(
            f"this {order}-gram stands twice",
            f"此 {order} 元语法出现了两次",
            int(numbers[twice[0] + 1]),
        )
    logarithms = (listed.values[ranks] * LOG10).astype(np.float32)
    weights = np.zeros(len(keys), np.float32) if highest else logarithms[:, 1].copy()
    return Level(keys, logarithms[:, 0].copy(), weights), numbers
