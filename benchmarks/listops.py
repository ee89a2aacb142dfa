"""Long ListOps: nested expressions over digits whose value depends on tokens a thousand apart
(Nangia & Bowman 2018; Tay et al. 2021).

    [MAX 2 9 [MIN 4 7 ] 0 ]  →  9
    operators: MIN, MAX, MED (median, rounded down), SM (sum modulo 10)

A node at depth d (the root at 1) is a digit with probability 3/4, or if d = 10; otherwise an
operator with 2 to 10 arguments made in the same way. Kept are expressions of more than 500 and
fewer than 2,000 tokens, each once: the rules of Long Range Arena. Trees grow level by level,
thousands at a time: the nodes of a level are one array, sizes and values are summed upwards, and a
child's place in the text is its parent's place plus one plus the sizes of its elder siblings.

Tested against: a recursive evaluator that reads the tokens, the distribution of a recursive
generator.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwise.randomness import numpy_generator

PAD, CLOSE, FIRST_OPERATOR, FIRST_DIGIT = 0, 1, 2, 6
OPERATORS = ("MIN", "MAX", "MED", "SM")
VOCABULARY_SIZE = 16
"""Padding, one closer, four openers, ten digits."""
NUM_CLASSES = 10
MIN_LENGTH, MAX_LENGTH = 500, 2000
MAX_DEPTH, MAX_ARGUMENTS = 10, 10
OPERATOR_SHARE = 0.25
TREES_AT_ONCE = 20_000

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class ListOps:
    """Expressions one after another: those of number i are tokens[offsets[i] : offsets[i + 1]]."""

    tokens: NDArray[np.uint8]
    offsets: Numbers
    values: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.values)

    def expression(self, number: int) -> NDArray[np.uint8]:
        return self.tokens[self.offsets[number] : self.offsets[number + 1]]

    def rows(self, numbers: Numbers, length: int) -> NDArray[np.uint8]:
        """Padded rows."""
        rows = np.full((len(numbers), length), PAD, dtype=np.uint8)
        for row, number in zip(rows, numbers, strict=True):
            tokens = self.expression(int(number))[:length]
            row[: len(tokens)] = tokens
        return rows

    def save(self, path: Path) -> None:
        np.savez_compressed(path, tokens=self.tokens, offsets=self.offsets, values=self.values)

    @staticmethod
    def load(path: Path) -> "ListOps":
        with np.load(path, allow_pickle=False) as saved:
            return ListOps(saved["tokens"], saved["offsets"], saved["values"])


def generate(
    count: int, *, seed: int, part: str, min_length: int = MIN_LENGTH, max_length: int = MAX_LENGTH
) -> ListOps:
    """`count` different expressions with min_length < length < max_length; the same seed and part
    give the same ones."""
    seen: set[bytes] = set()
    texts: list[NDArray[np.uint8]] = []
    values: list[int] = []
    chunk = 0
    while len(texts) < count:
        generator = numpy_generator(seed, "listops", part, chunk)
        chunk += 1
        for tokens, value in _grow(generator, min_length, max_length):
            key = tokens.tobytes()
            if key not in seen and len(texts) < count:
                seen.add(key)
                texts.append(tokens)
                values.append(value)
    offsets = np.concatenate([[0], np.cumsum([len(tokens) for tokens in texts])]).astype(np.int64)
    return ListOps(np.concatenate(texts), offsets, np.array(values, dtype=np.uint8))


@dataclass
class _Level:
    """The nodes of one depth, in the order of their parents."""

    tree: Numbers
    parent: Numbers
    """Index in the level above; −1 for roots."""
    kind: Numbers
    """0 … 3: an operator; 4 … 13: a digit."""
    size: Numbers
    value: Numbers


def _grow(
    generator: np.random.Generator, min_length: int, max_length: int
) -> list[tuple[NDArray[np.uint8], int]]:
    """One chunk of trees: those whose length is right, as tokens and value."""
    levels: list[_Level] = []
    tree, parent = np.arange(TREES_AT_ONCE), np.full(TREES_AT_ONCE, -1)
    for depth in range(1, MAX_DEPTH + 1):
        is_operator = (
            generator.random(len(tree)) < OPERATOR_SHARE
            if depth < MAX_DEPTH
            else np.zeros(len(tree), bool)
        )
        kind = np.where(
            is_operator,
            generator.integers(4, size=len(tree)),
            4 + generator.integers(10, size=len(tree)),
        )
        levels.append(_Level(tree, parent, kind, np.where(is_operator, 2, 1), kind - 4))
        arguments = np.where(
            is_operator, generator.integers(2, MAX_ARGUMENTS + 1, size=len(tree)), 0
        )
        parent = np.repeat(np.arange(len(tree)), arguments)
        tree = tree[parent]
        if len(tree) == 0:
            break
    for above, below in zip(levels[-2::-1], levels[:0:-1], strict=True):
        above.size = above.size + np.bincount(below.parent, below.size, len(above.size)).astype(
            np.int64
        )
        _evaluate(above, below)
    kept = (levels[0].size > min_length) & (levels[0].size < max_length)
    return _write(levels, kept)


def _evaluate(above: _Level, below: _Level) -> None:
    """Values of a level's operators from their arguments, which stand together in the level
    below."""
    operators = np.flatnonzero(above.kind < 4)
    if len(operators) == 0:
        return
    order = np.lexsort((below.value, below.parent))  # each operator's arguments, smallest first
    ranked = below.value[order]
    counts = np.bincount(below.parent, minlength=len(above.kind))[operators]
    ends = np.cumsum(counts)
    starts = ends - counts
    # The median of an even number of arguments is the mean of the middle two, cut to a whole
    # number.
    medians = (ranked[starts + (counts - 1) // 2] + ranked[starts + counts // 2]) // 2
    results = np.stack(
        [ranked[starts], ranked[ends - 1], medians, np.add.reduceat(ranked, starts) % 10]
    )
    above.value[operators] = results[above.kind[operators], np.arange(len(operators))]


def _write(levels: list[_Level], kept: NDArray[np.bool_]) -> list[tuple[NDArray[np.uint8], int]]:
    """The kept trees as text: every node's place is known from sizes alone."""
    lengths = np.where(kept, levels[0].size, 0)
    starts = np.cumsum(lengths) - lengths
    text = np.full(int(lengths.sum()), CLOSE, dtype=np.uint8)
    place = starts
    for depth, level in enumerate(levels):
        if depth > 0:
            # Elder siblings: what was written for this parent before.
            sizes = np.cumsum(level.size) - level.size
            is_first = np.concatenate([[True], level.parent[1:] != level.parent[:-1]])
            first = np.maximum.accumulate(np.where(is_first, np.arange(len(sizes)), 0))
            place = place[level.parent] + 1 + sizes - sizes[first]
        own = kept[level.tree]
        text[place[own]] = FIRST_OPERATOR + level.kind[own]
    chosen = np.flatnonzero(kept)
    return [
        (text[starts[number] : starts[number] + lengths[number]], int(levels[0].value[number]))
        for number in chosen
    ]
