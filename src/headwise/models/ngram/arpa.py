"""ARPA files: n-gram models as text, the form that KenLM, SRILM and others exchange.

    \\data\\
    ngram 1=5
    \\1-grams:
    -0.7	the	-0.3        log₁₀ p(the), the word, log₁₀ of its weight as a context
    \\end\\

Reading checks what it reads: as many n-grams as announced, numbers that are logarithms of probabilities, words that are in
the vocabulary, contexts that are listed, nothing twice; what is wrong is named by file and line. An unknown word without a
probability of its own gets KenLM's 10⁻¹⁰⁰. Tested against: KenLM's scores of the same file; our own tables written and read.
"""

import gzip
import io
import math
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from headwise.data.lines import find_text_file, read_lines
from headwise.errors import DataError, UsageError
from headwise.models.ngram.lookup import ABSENT, KeyIndex
from headwise.models.ngram.tables import Level, NgramTables
from headwise.text.tokenizer import BOS, EOS, PAD, SPECIAL_PIECES, UNKNOWN

LOG10 = math.log(10.0)
NEVER = -99.0
"""log₁₀ of what is never predicted, the beginning of a sentence, by custom."""
UNKNOWN_LOG10 = -100.0
_LINES = 1 << 16


def is_arpa(path: Path) -> bool:
    """By its name: model.arpa, model.arpa.gz, model.arpa.xz."""
    return path.name.removesuffix(".gz").removesuffix(".xz").endswith(".arpa")


def write_arpa(file: io.TextIOBase, tables: NgramTables, words: Sequence[str]) -> None:
    """Write a model; `words` are the names of the ids from 4 on."""
    if not tables.falls_back:
        raise UsageError(
            "a model with add_k or maximum_likelihood cannot be written as ARPA: there an unseen word's probability comes from a "
            "shorter context, here it does not; use another smoothing",
            "add_k 与 maximum_likelihood 模型不能写成 ARPA：在 ARPA 中未见词的概率来自更短的上文，而这里不是；请换用其他平滑",
        )
    names = np.array([*SPECIAL_PIECES, *words], dtype=object)
    if bad := next((name for name in words if not name or len(name.split()) != 1), None):
        raise UsageError(
            f"the token {bad!r} cannot stand in an ARPA file, which separates words by spaces; use text.kind=words",
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
        probabilities = np.where(np.isneginf(level.probabilities), NEVER * LOG10, level.probabilities) / LOG10
        weights = level.weights / LOG10
        rows = zip(probabilities.tolist(), texts.tolist(), weights.tolist(), strict=True)
        if number == 1:
            rows = ((p, name, w) for token, (p, name, w) in enumerate(rows) if token != PAD)  # type: ignore[assignment]
        if number < tables.order:
            lines = (f"{p:.7g}\t{name}\t{w:.7g}\n" for p, name, w in rows)
        else:
            lines = (f"{p:.7g}\t{name}\n" for p, name, _ in rows)
        while block := list(islice(lines, _LINES)):
            file.writelines(block)
    file.write("\n\\end\\\n")


def save_arpa(path: Path, tables: NgramTables, words: Sequence[str]) -> None:
    """Write a file, packed where its name ends in .gz; a file that exists is left alone."""
    if path.exists():
        raise UsageError(
            f"{path} exists already; choose another name or remove it", f"{path} 已存在；请换个名字或先删除"
        )
    try:
        with (
            gzip.open(path, "wb") if path.suffix == ".gz" else path.open("wb") as raw,
            io.TextIOWrapper(cast(BinaryIO, raw), encoding="utf-8") as file,
        ):
            write_arpa(file, tables, words)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


class _Reader:
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


def read_arpa(path: Path) -> tuple[list[str], NgramTables]:
    """The names of the ids from 4 on, and the tables."""
    reader = _Reader(find_text_file(path))
    lines = iter(reader)
    announced = _read_head(reader, lines)
    names, level = _read_words(reader, _section(reader, lines, announced, 1), highest=len(announced) == 1)
    ids = {name: number for number, name in enumerate([*SPECIAL_PIECES, *names])}
    levels, indexes = [level], [KeyIndex(level.keys)]
    for order in range(2, len(announced) + 1):
        rows = _section(reader, lines, announced, order)
        levels.append(_read_longer(reader, rows, order, ids, indexes, highest=order == len(announced)))
        indexes.append(KeyIndex(levels[-1].keys))
    return names, NgramTables(tuple(levels), falls_back=True, floor=0.0)


def _read_head(reader: _Reader, lines: Iterator[str]) -> list[int]:
    """How many n-grams of each order are announced."""
    for line in lines:
        if line.strip() == "\\data\\":
            break
    else:
        raise reader.error("has no line \\data\\, with which an ARPA file begins", "没有 ARPA 文件开头的 \\data\\ 行")
    announced: list[int] = []
    for line in lines:
        if line.strip() == "\\1-grams:":
            break
        found = re.fullmatch(r"ngram\s+(\d{1,2})\s*=\s*(\d{1,12})", line.strip())
        if found is None or int(found[1]) != len(announced) + 1:
            raise reader.error(
                f"{line[:60]!r} stands where `ngram {len(announced) + 1}=COUNT` or \\1-grams: is expected",
                f"此处应为 `ngram {len(announced) + 1}=数目` 或 \\1-grams:，而不是 {line[:60]!r}",
            )
        announced.append(int(found[2]))
    if not announced:
        raise reader.error("announces no n-grams", "没有声明任何 n 元语法")
    return announced


def _section(
    reader: _Reader, lines: Iterator[str], announced: Sequence[int], order: int
) -> Iterator[tuple[int, float, list[str], float]]:
    """Line number, log₁₀ probability, words and log₁₀ weight of each n-gram; checks that all announced are there."""
    following = f"\\{order + 1}-grams:" if order < len(announced) else "\\end\\"
    count = 0
    for count, line in enumerate(lines):
        if line.startswith("\\"):
            if line.strip() != following or count != announced[order - 1]:
                raise reader.error(
                    f"{announced[order - 1]:,} {order}-grams are announced, {count:,} stand before {line.strip()[:20]} "
                    f"(then {following} is expected)",
                    f"声明有 {announced[order - 1]:,} 个 {order} 元语法，而 {line.strip()[:20]} 之前有 {count:,} 个（其后应为 {following}）",
                )
            return
        if count == announced[order - 1]:
            raise reader.error(
                f"{announced[order - 1]:,} {order}-grams are announced, here stands one more",
                f"声明有 {announced[order - 1]:,} 个 {order} 元语法，此处多出一个",
            )
        yield _parse(reader, line, order)
    raise reader.error(f"ends without {following}: it is cut short", f"结尾没有 {following}：文件不完整")


def _parse(reader: _Reader, line: str, order: int) -> tuple[int, float, list[str], float]:
    cells = line.split()
    try:
        probability = float(cells[0])
        weight = float(cells[order + 1]) if len(cells) == order + 2 else 0.0
    except ValueError:
        probability = weight = math.nan
    if len(cells) not in (order + 1, order + 2) or not (probability <= 0.0 and math.isfinite(weight)):
        raise reader.error(
            f"{line[:60]!r} is not a {order}-gram: a logarithm of at most 0, {order} word(s), perhaps a weight",
            f"{line[:60]!r} 不是 {order} 元语法：应为不大于 0 的对数、{order} 个词，以及可有可无的权重",
        )
    return reader.number, probability, cells[1 : order + 1], weight


def _read_words(
    reader: _Reader, rows: Iterator[tuple[int, float, list[str], float]], *, highest: bool
) -> tuple[list[str], Level]:
    found: dict[str, tuple[float, float]] = {}
    for number, probability, (word,), weight in rows:
        if word in found:
            raise reader.error(f"the word {word!r:.60} stands twice", f"词 {word!r:.60} 出现了两次", number)
        found[word] = (probability, weight)
    for special in (BOS, EOS):
        if SPECIAL_PIECES[special] not in found:
            raise reader.error(
                f"has no {SPECIAL_PIECES[special]} among its words", f"词表中没有 {SPECIAL_PIECES[special]}"
            )
    found.setdefault(SPECIAL_PIECES[UNKNOWN], found.pop("<UNK>", (UNKNOWN_LOG10, 0.0)))
    names = [name for name in found if name not in SPECIAL_PIECES]
    logarithms = np.array([found.get(name, (-np.inf, 0.0)) for name in [*SPECIAL_PIECES, *names]]) * LOG10
    logarithms[[PAD, BOS], 0] = -np.inf
    logarithms[:, 1] *= not highest
    values = logarithms.astype(np.float32)
    return names, Level(np.arange(len(values), dtype=np.int64), values[:, 0].copy(), values[:, 1].copy())


def _read_longer(
    reader: _Reader,
    rows: Iterator[tuple[int, float, list[str], float]],
    order: int,
    ids: dict[str, int],
    indexes: Sequence[KeyIndex],
    *,
    highest: bool,
) -> Level:
    numbers: list[int] = []
    tokens: list[int] = []
    values: list[tuple[float, float]] = []
    for number, probability, words, weight in rows:
        for word in words:
            token = ids.get(word)
            if token is None:
                raise reader.error(
                    f"the word {word!r:.60} is not among the 1-grams", f"词 {word!r:.60} 不在 1 元语法之中", number
                )
            tokens.append(token)
        numbers.append(number)
        values.append((probability, weight))
    table = np.array(tokens, dtype=np.int64).reshape(-1, order)
    keys = table[:, 0].copy()
    for length in range(2, order + 1):
        keys = keys * len(indexes[0].keys) + table[:, length - 1]
        if length < order:
            found = indexes[length - 1].find(keys)
            if (found == ABSENT).any():
                at = int(np.argmax(found == ABSENT))
                raise reader.error(
                    f"the first {length} words of this {order}-gram are not among the {length}-grams",
                    f"此 {order} 元语法的前 {length} 个词不在 {length} 元语法之中",
                    numbers[at],
                )
            keys = found.astype(np.int64)
    ranks = np.argsort(keys, kind="stable")
    keys = keys[ranks]
    if len(keys) and (twice := np.flatnonzero(keys[1:] == keys[:-1])).size:
        raise reader.error(
            f"this {order}-gram stands twice", f"此 {order} 元语法出现了两次", numbers[ranks[twice[0] + 1]]
        )
    logarithms = (np.array(values, dtype=np.float64).reshape(-1, 2)[ranks] * LOG10).astype(np.float32)
    weights = np.zeros(len(keys), np.float32) if highest else logarithms[:, 1].copy()
    return Level(keys, logarithms[:, 0].copy(), weights)
