"""Fills every target sentence with </s> up to the same number of positions, for parallel
translators whose decoder always reads that many BEGIN tokens.

    y₁ … yₘ  →  y₁ … yₘ </s> </s> … </s>      `positions` in all, the last one added by packing

The pairs are those of a store; only the ends are added when they are read, so that one prepared
corpus serves every kind of length.

Tested against: the pairs of the store, and a target that is too long.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwise.data.batching import PairSource
from headwise.data.shards import CorpusRange, Ragged, concatenated_ranges
from headwise.errors import DataError
from headwise.text.tokenizer import EOS


@dataclass(frozen=True)
class FixedTargets:
    """The pairs of `store`, every target as long as `positions` with its ends."""

    store: PairSource
    positions: int

    @property
    def corpora(self) -> Sequence[CorpusRange]:
        return self.store.corpora

    def __len__(self) -> int:
        return len(self.store)

    def gather(self, pairs: np.ndarray, key: Sequence[int | str] = ()) -> tuple[Ragged, Ragged]:
        source, target = self.store.gather(pairs, key)
        return source, fill_with_ends(target, self.positions)


def fill_with_ends(target: Ragged, positions: int) -> Ragged:
    """Each target followed by ends of sentence, one position short: packing adds the last end."""
    check_positions(int(target.lengths.max(initial=0)) + 1, positions)
    width = positions - 1
    tokens = np.full(len(target.lengths) * width, EOS, dtype=target.tokens.dtype)
    cells = concatenated_ranges(np.arange(len(target.lengths)) * width, target.lengths)
    tokens[cells] = target.tokens
    return Ragged(tokens, np.full(len(target.lengths), width, dtype=target.lengths.dtype))


def check_positions(longest: int, positions: int) -> None:
    """Refuse a target that has more tokens than the decoder has positions."""
    if longest > positions:
        raise DataError(
            f"a target has {longest} tokens with its end, but the decoder has {positions} "
            f"positions (model.length.positions); set model.length.positions={longest} or more, "
            "or leave long pairs out with data.filter.max_tokens",
            f"有目标句连同结束符共 {longest} 个词元，而解码器只有 {positions} 个位置"
            f"（model.length.positions）；请设 model.length.positions={longest} 或更大，"
            "或用 data.filter.max_tokens 去掉长句对",
        )
