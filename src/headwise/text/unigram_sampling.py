"""Draws segmentations of words from a unigram model, likely ones more often (Kudo 2018).

A segmentation of a word has the product of the probabilities of its pieces. `alpha` sharpens or
flattens that distribution, and each segmentation y is drawn with

    P(y) ∝ p(y)^alpha        0: all alike      1: as the model says      large: the best one

All segmentations are the paths of a lattice, so that none has to be listed. Forward filtering sums
them up from the left, and backward sampling draws the last piece first (Scott 2002):

    F(0) = 0                  F(j) = log Σ exp(F(i) + alpha · score(i…j))
    the piece i…j before j is drawn with probability  exp(F(i) + alpha · score(i…j) − F(j))

Words of one length are treated together. A tree of the pieces' characters, as arrays, finds the
pieces that begin at each place. Randomness is a function of a number for each draw and of the step
(`randomness.mix_bits`). Tested against: the enumeration of all segmentations of short words, and
sentencepiece's best one for a large alpha.
"""

from dataclasses import dataclass

import numpy as np

from headwise.randomness import mix_bits
from headwise.text.piece_table import PieceTable

_STEP = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class PieceTree:
    """The pieces as a tree: each edge is a character, and a node may be the end of a piece."""

    keys: np.ndarray
    """node · size of the alphabet + character, sorted."""
    children: np.ndarray
    """The node that each edge leads to; 0 is the root."""
    pieces: np.ndarray
    """The piece that ends at a node; -1: none."""
    scores: np.ndarray
    num_characters: int
    longest: int

    @staticmethod
    def of(table: PieceTable) -> "PieceTree":
        size, edges, ends = len(table.alphabet) + 1, dict[int, int](), {0: -1}
        for number, text in enumerate(table.texts):
            node = 0
            for character in text:
                node = edges.setdefault(node * size + table.alphabet[character], len(edges) + 1)
                ends.setdefault(node, -1)
            if text:
                ends[node] = number
        keys = np.fromiter(edges, dtype=np.int64, count=len(edges))
        order = np.argsort(keys)
        children = np.fromiter(edges.values(), dtype=np.int64, count=len(edges))
        pieces = np.array([ends[node] for node in range(len(ends))], dtype=np.int64)
        longest = int(table.lengths.max(initial=1))
        return PieceTree(keys[order], children[order], pieces, table.scores, size, longest)

    def lattice(self, characters: np.ndarray) -> np.ndarray:
        """[word, length - 1, end]: the piece of so many characters that ends there, or -1."""
        count, width = characters.shape
        found = np.full((count, min(self.longest, width), width), -1, dtype=np.int64)
        word, begin = (index.ravel() for index in np.indices((count, width)))
        node = np.zeros(len(word), dtype=np.int64)
        for length in range(found.shape[1]):
            inside = begin + length < width
            word, begin, node = word[inside], begin[inside], node[inside]
            wanted = node * self.num_characters + characters[word, begin + length]
            place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
            known = self.keys[place] == wanted
            word, begin, node = word[known], begin[known], self.children[place[known]]
            found[word, length, begin + length] = self.pieces[node]
        return found


def sample_words(
    characters: np.ndarray,
    tree: PieceTree,
    *,
    alpha: float,
    words: np.ndarray,
    seeds: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The pieces of each draw, filled up with -1, and how many they are.

    `characters` are words of equal length (one a row). Draw d is of the row `words[d]` and has the
    random number `seeds[d]` (uint64). A word that the pieces cannot make has 0 pieces.
    """
    lattice = tree.lattice(characters)
    weights = np.where(lattice >= 0, alpha * tree.scores[lattice], -np.inf)
    sums = _forward(weights)
    width = characters.shape[1]
    result = np.full((len(words), width), -1, dtype=np.int64)
    count = np.zeros(len(words), dtype=np.int64)
    end = np.where(np.isfinite(sums[words, width]), width, 0)
    lengths = np.arange(1, weights.shape[1] + 1)
    for step in range(width):
        going = np.flatnonzero(end)
        if len(going) == 0:
            break
        word, here = words[going], end[going]
        begin = np.maximum(here[:, None] - lengths, 0)
        logarithm = sums[word[:, None], begin] + weights[word, :, here - 1]
        reached = np.cumsum(np.exp(logarithm - sums[word, here][:, None]), 1)
        drawn = _draw(seeds[going], step) * reached[:, -1]
        chosen = (reached <= drawn[:, None]).sum(1)
        result[going, width - 1 - step] = lattice[word, chosen, here - 1]
        count[going] += 1
        end[going] = here - lengths[chosen]
    filled = np.argsort(result < 0, axis=1, kind="stable")  # pieces first, in their order
    return np.take_along_axis(result, filled, 1), count


def _forward(weights: np.ndarray) -> np.ndarray:
    """F of every place of every word: [word, 0 … width]."""
    count, longest, width = weights.shape
    sums = np.full((count, width + 1), -np.inf)
    sums[:, 0] = 0.0
    for end in range(1, width + 1):
        usable = min(longest, end)
        terms = weights[:, :usable, end - 1] + sums[:, end - usable : end][:, ::-1]
        highest = terms.max(1)
        shift = np.where(np.isfinite(highest), highest, 0.0)
        with np.errstate(divide="ignore"):
            sums[:, end] = shift + np.log(np.exp(terms - shift[:, None]).sum(1))
    return sums


def _draw(seeds: np.ndarray, step: int) -> np.ndarray:
    """A random number in [0, 1) for each draw."""
    mixed = mix_bits(mix_bits(seeds) + np.uint64((step + 1) * _STEP % (1 << 64)))
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
