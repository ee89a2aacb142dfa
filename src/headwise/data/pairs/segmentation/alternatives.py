"""Draws other segmentations of each distinct unit of a corpus, once and for all epochs.

A unit that occurs n times gets n of them, but at least 8 (another epoch is to differ) and at most
256 (by then their shares are those of the distribution within 3 %). Number 0 of each unit is its
best segmentation, which is not drawn.

    unit      ▁related                    first   0
    number 0  ▁related                    best
           1  ▁rel ated
           2  ▁re l ated
           …

Draw k of a unit is a function of (the unit's tokens, k), so that it depends neither on the other
units nor on the seed of a run: runs that share their data share the table. Units that no piece
crosses, such as single characters, bytes and tags, have their best segmentation only.

Tested against: the draws unit by unit; every segmentation has the characters of its unit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from headwise.data.pairs.segmentation.choices import BpeDropout, UnigramSampling
from headwise.data.pairs.segmentation.units import Units
from headwise.data.shards import Ragged, concatenated_ranges
from headwise.randomness import mix_bits
from headwise.text.bpe_dropout import Merges, cut_words
from headwise.text.piece_table import PieceTable
from headwise.text.unigram_sampling import PieceTree, sample_words

FEWEST, MOST = 8, 256
LONGEST = 64
"""Characters of a unit; a longer one, such as a web address, keeps its best segmentation."""
_BLOCK_CHARACTERS = 1 << 19
_DRAW = np.uint64(0xD1B54A32D192ED03)

Cut = tuple[np.ndarray, np.ndarray]
Draw = Callable[[np.ndarray, np.ndarray, np.ndarray], Cut]
"""(characters of words of one length, the word of each draw, the random number of each draw) →
pieces, filled up, and their number (0: there is no segmentation but the best)."""


@dataclass(frozen=True)
class Alternatives:
    """The segmentations of all units: those of unit u are `first[u]` … `first[u + 1] - 1`."""

    first: np.ndarray
    lengths: np.ndarray
    tokens: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths


def draw_alternatives(
    units: Units, table: PieceTable, settings: BpeDropout | UnigramSampling
) -> Alternatives:
    """The best and the drawn segmentations of each unit."""
    lengths = units.tokens.lengths
    starts = np.cumsum(lengths) - lengths
    is_text = table.lengths[units.tokens.tokens] > 0
    size = np.add.reduceat(table.lengths[units.tokens.tokens], starts)
    usable = np.logical_and.reduceat(is_text, starts) & (size > 1) & (size <= LONGEST)
    draw, is_right = _drawer(table, settings)
    drawn = np.where(usable, np.clip(units.counts, FEWEST, MOST), 0)
    parts = []
    for chosen in _blocks(size, drawn):
        characters = _characters(units.tokens, starts, chosen, table, size[chosen[0]])
        right = is_right(characters, _padded(units.tokens, starts, chosen))
        drawn[chosen[~right]] = 0
        chosen, characters = chosen[right], characters[right]
        word = np.repeat(np.arange(len(chosen)), drawn[chosen])
        number = concatenated_ranges(np.zeros(len(chosen), dtype=np.int64), drawn[chosen])
        seeds = units.hashes[chosen][word] + (number + 1).astype(np.uint64) * _DRAW
        pieces, count = draw(characters, word, mix_bits(seeds))
        unit, order = chosen[word].astype(np.int32), number.astype(np.int16)  # there are many
        tokens = pieces[pieces >= 0].astype(np.int32)
        parts.append((unit, order, tokens, count.astype(np.int16)))
    return _join(units, drawn, parts)


def _drawer(
    table: PieceTable, settings: BpeDropout | UnigramSampling
) -> tuple[Draw, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """What draws, and what says for which words it may: (characters, best pieces) → bool."""
    if isinstance(settings, UnigramSampling):
        tree, alpha = PieceTree.of(table), settings.alpha

        def sample(characters: np.ndarray, word: np.ndarray, seeds: np.ndarray) -> Cut:
            return sample_words(characters, tree, alpha=alpha, words=word, seeds=seeds)

        return sample, lambda characters, best: np.ones(len(best), dtype=bool)
    merges, probability = Merges.of(table), settings.probability

    def leave_out(characters: np.ndarray, word: np.ndarray, seeds: np.ndarray) -> Cut:
        return cut_words(characters[word], merges, probability=probability, seeds=seeds)

    def is_right(characters: np.ndarray, best: np.ndarray) -> np.ndarray:
        """Without dropout it must be the best one: nothing is known of other models' rules."""
        known = merges.single[characters].min(1) >= 0
        seeds = np.zeros(len(characters), dtype=np.uint64)
        cut, _ = cut_words(characters, merges, probability=0.0, seeds=seeds)
        width = best.shape[1]
        same: np.ndarray = (cut[:, :width] == best).all(1) & (cut[:, width:] < 0).all(1)
        return same & known

    return leave_out, is_right


def _blocks(size: np.ndarray, drawn: np.ndarray) -> Iterator[np.ndarray]:
    """Units of one length, so many that their draws take bounded memory."""
    for length in np.unique(size[drawn > 0]).tolist():
        chosen = np.flatnonzero((size == length) & (drawn > 0))
        work = np.cumsum(drawn[chosen]) * length
        cuts = np.flatnonzero(np.diff(work // _BLOCK_CHARACTERS)) + 1
        yield from np.split(chosen, cuts)


def _characters(
    tokens: Ragged, starts: np.ndarray, chosen: np.ndarray, table: PieceTable, size: int
) -> np.ndarray:
    """The characters of units of one length, one a row."""
    pieces = tokens.tokens[concatenated_ranges(starts[chosen], tokens.lengths[chosen])]
    begins = np.cumsum(table.lengths) - table.lengths
    places = concatenated_ranges(begins[pieces], table.lengths[pieces])
    return table.characters[places].reshape(len(chosen), size)


def _padded(tokens: Ragged, starts: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The best segmentations, one a row, filled up with -1."""
    lengths = tokens.lengths[chosen]
    best = np.full((len(chosen), int(lengths.max())), -1, dtype=np.int64)
    best[np.arange(best.shape[1]) < lengths[:, None]] = tokens.tokens[
        concatenated_ranges(starts[chosen], lengths)
    ]
    return best


def _join(
    units: Units,
    drawn: np.ndarray,
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]],
) -> Alternatives:
    """The best and the drawn ones in the order of the units."""
    first = np.concatenate([[0], np.cumsum(drawn + 1)])
    lengths = np.zeros(int(first[-1]), dtype=np.int64)
    lengths[first[:-1]] = units.tokens.lengths
    for unit, number, _, count in parts:
        lengths[first[unit] + 1 + number] = count
    # A unit without another segmentation stands in its places with the best one.
    owner = np.repeat(np.arange(len(drawn)), drawn + 1)
    empty = np.flatnonzero(lengths == 0)
    lengths[empty] = units.tokens.lengths[owner[empty]]
    starts = np.cumsum(lengths) - lengths
    tokens = np.zeros(int(lengths.sum()), dtype=np.int32)
    best = np.concatenate([first[:-1], empty])
    source = np.cumsum(units.tokens.lengths) - units.tokens.lengths
    tokens[concatenated_ranges(starts[best], lengths[best])] = units.tokens.tokens[
        concatenated_ranges(source[owner[best]], lengths[best])
    ]
    for unit, number, pieces, count in parts:
        places = starts[first[unit] + 1 + number]
        tokens[concatenated_ranges(places, count)] = pieces
    return Alternatives(first, lengths, tokens)
