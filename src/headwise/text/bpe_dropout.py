"""BPE-dropout: byte pair encoding that now and then leaves a merge out (Provilkov et al. 2020).

Byte pair encoding begins with the characters of a word and joins two neighbours again and again:
always the pair whose piece has the highest score, the leftmost of equal ones, until no two
neighbours make a piece. With dropout, every possible merge of a step is left out with a
probability, in this step only; the word is finished when none is left.

    ▁ u n r e l a t e d      0:  ▁un related      0.1:  ▁un rel ated, ▁ un related, …
                             1:  ▁ u n r e l a t e d

Many words of one length are cut at once. A word makes exactly one merge in a round or is finished,
so that all words still at work have the same number of symbols: a matrix without padding, that
becomes one column narrower in each round.

Randomness is a function of a number for each word, of the round and of the place
(`randomness.mix_bits`), so that a word is cut in the same way among whatever others it stands.
Tested against: sentencepiece for probability 0, characters for 1, and for short words the
distribution that follows from enumerating all sequences of merges.
"""

from dataclasses import dataclass

import numpy as np

from headwise.randomness import mix_bits
from headwise.text.piece_table import PieceTable

_ROUND, _PLACE = 0x9E3779B97F4A7C15, np.uint64(0xD1B54A32D192ED03)
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Merges:
    """Which neighbours make a piece, and in which order pieces are made."""

    keys: np.ndarray
    """left · number of pieces + right, sorted."""
    pieces: np.ndarray
    """The piece that each pair makes."""
    ranks: np.ndarray
    """Of each piece; the lowest is made first."""
    single: np.ndarray
    """The piece of each character."""

    @staticmethod
    def of(table: PieceTable) -> "Merges":
        numbers = {text: number for number, text in enumerate(table.texts) if text}
        found = {}
        for text, number in numbers.items():
            for cut in range(1, len(text)):
                left, right = numbers.get(text[:cut]), numbers.get(text[cut:])
                if left is not None and right is not None:
                    found[left * len(table.texts) + right] = number
        keys = np.fromiter(found, dtype=np.int64, count=len(found))
        order = np.argsort(keys)
        made = np.fromiter(found.values(), dtype=np.int64, count=len(found))
        # Equal scores have equal ranks: of these the leftmost is made first.
        ranks = np.unique(-table.scores, return_inverse=True)[1].astype(np.int64)
        return Merges(keys[order], made[order], ranks, table.single)

    def find(self, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rank and the number of the piece of each pair; without one, the rank is the
        highest number there is."""
        if len(self.keys) == 0:
            return np.full(left.shape, _NEVER), np.zeros(left.shape, dtype=np.int64)
        wanted = left * len(self.ranks) + right
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        pieces = self.pieces[place]
        return np.where(self.keys[place] == wanted, self.ranks[pieces], _NEVER), pieces


def cut_words(
    characters: np.ndarray, merges: Merges, *, probability: float, seeds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pieces of words of equal length (one a row, characters of the alphabet), filled up
    with -1, and how many each word has. Every character is a piece.

    `seeds` are the random numbers of the words (uint64).
    """
    symbols = merges.single[characters]
    result = np.full(symbols.shape, -1, dtype=np.int64)
    count = np.zeros(len(symbols), dtype=np.int64)
    rows, threshold = np.arange(len(symbols)), np.uint64(round(probability * (1 << 53)))
    ranks, pieces = merges.find(symbols[:, :-1], symbols[:, 1:])
    for number in range(symbols.shape[1]):
        width = symbols.shape[1]
        allowed = ranks
        if threshold:
            allowed = np.where(_draw(seeds[rows], number, width - 1) < threshold, _NEVER, ranks)
        place = allowed.argmin(1) if width > 1 else np.zeros(len(rows), dtype=np.int64)
        going = (
            np.take_along_axis(allowed, place[:, None], 1)[:, 0] < _NEVER
            if width > 1
            else np.zeros(len(rows), dtype=bool)
        )
        done = rows[~going]
        result[done, :width], count[done] = symbols[~going], width
        rows, place = rows[going], place[going]
        if len(rows) == 0:
            break
        symbols, ranks, pieces = _merge(merges, symbols[going], ranks[going], pieces[going], place)
    return result, count


def _merge(
    merges: Merges, symbols: np.ndarray, ranks: np.ndarray, pieces: np.ndarray, place: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each row with the symbols at `place` and behind it made one, and its pairs afterwards."""
    each = np.arange(len(place))
    made = pieces[each, place]
    symbols, ranks, pieces = (_leave_out(array, place + 1) for array in (symbols, ranks, pieces))
    symbols[each, place] = made
    for shift in (-1, 0):  # the pairs that the new symbol is the right and the left one of
        inside = (place + shift >= 0) & (place + shift < ranks.shape[1])
        row, first = each[inside], place[inside] + shift
        found = merges.find(symbols[row, first], symbols[row, first + 1])
        ranks[row, first], pieces[row, first] = found
    return symbols, ranks, pieces


def _leave_out(array: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Each row without one of its columns; a column behind the last one stands for the last."""
    column = np.arange(array.shape[1] - 1)
    return np.take_along_axis(array, column + (column >= place[:, None]), 1)


def _draw(seeds: np.ndarray, number: int, width: int) -> np.ndarray:
    """A random number below 2^53 for each place of each row."""
    begin = np.uint64((number + 1) * _ROUND % (1 << 64))
    places = np.arange(width, dtype=np.uint64) * _PLACE + begin
    return mix_bits(mix_bits(seeds)[:, None] + places) >> np.uint64(11)
