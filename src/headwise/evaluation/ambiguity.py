"""Measures how ambiguous a parallel corpus is: how little the source says about words and word
order.

A model that writes all words at once cannot see which of several right translations its other
words belong to, so it mixes them. Distilled text has fewer of them. Three numbers show it, over the
words that a simple alignment links:

    words          H(T | S) = - Σ_s p(s) Σ_t p(t | s) log2 p(t | s)      bits for a target word
    order          H(Q | S, P), the same for the quarter Q of the target sentence in which the
                   translation stands, given the source word and the quarter P in which that stands
    translations   Σ_s |{t linked to s}| / |{s}|                         different words for a word

Each target word is linked to the source word (or to none) of greatest t(target | source), with the
word-translation probabilities of IBM Model 1 (Brown et al. 1993), found by five rounds of
expectation maximisation. Zhou et al. 2020 (Understanding Knowledge Distillation in
Non-autoregressive Machine Translation) measure words so; `order` is our own simplification of
reordering scores. All three depend on the number of pairs: compare corpora with the same sources.

Tested against: a dictionary (0 bits, one translation), coins (1 bit, two), two orders (1 bit), the
same estimate written with dictionaries, and two wordings of the pocket corpus.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

NUM_ROUNDS = 5
_NO_WORD = 0
"""The empty source word, which target words without a counterpart are linked to."""

QUARTERS = 4

WordPair = tuple[Sequence[str], Sequence[str]]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Ambiguity:
    """Of one corpus."""

    words: float
    """Bits of a target word that its source word leaves open."""
    order: float
    """Bits of the place of a target word that its source word and the place of that leave open."""
    translations: float
    """Different target words of a source word, on average."""
    pairs: int

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class _PossibleLinks:
    """Every target word with every source word of its pair, in one row after the other."""

    entry: Numbers
    """Number of the combination (source word, target word), [candidate]."""
    place: Numbers
    """Quarter of the sentence in which the source word stands, [candidate]."""
    begin: Numbers
    """The first candidate of each target word, [target word of the corpus]."""
    target_place: Numbers
    """Quarter of the sentence in which the target word stands, [target word of the corpus]."""
    source: Numbers
    """Source word of each combination, [combination]."""

    @property
    def lengths(self) -> Numbers:
        return np.diff(np.append(self.begin, len(self.entry)))


def measure_ambiguity(pairs: Sequence[WordPair]) -> Ambiguity:
    """Measure a corpus of words; pairs with an empty side are ignored."""
    usable = [pair for pair in pairs if pair[0] and pair[1]]
    if not usable:
        return Ambiguity(0.0, 0.0, 0.0, 0)
    candidates = _list_candidates(usable)
    chosen = _link(candidates, _learn(candidates))
    is_linked = candidates.source[candidates.entry[chosen]] != _NO_WORD
    chosen, where = chosen[is_linked], candidates.target_place[is_linked]
    if not len(chosen):
        return Ambiguity(0.0, 0.0, 0.0, len(usable))
    links = candidates.entry[chosen]
    sources = candidates.source[links]
    return Ambiguity(
        words=_entropy(sources, links),
        order=_entropy(sources * QUARTERS + candidates.place[chosen], where),
        translations=len(np.unique(links)) / len(np.unique(sources)),
        pairs=len(usable),
    )


def _entropy(given: Numbers, found: Numbers) -> float:
    """H(found | given) in bits, from the frequencies."""
    _, number = np.unique(given, return_inverse=True)
    together, counts = np.unique(np.stack([number.reshape(-1), found]), axis=1, return_counts=True)
    totals = np.bincount(together[0], weights=counts)
    bits = (counts * np.log2(totals[together[0]] / counts)).sum() / counts.sum()
    return float(bits)


def _quarters(length: int) -> list[int]:
    return [QUARTERS * place // length for place in range(length)]


def _list_candidates(pairs: Sequence[WordPair]) -> _PossibleLinks:
    sources: dict[str, int] = {}
    targets: dict[str, int] = {}
    keys, places, target_places, lengths = [], [], [], []
    for left, right in pairs:
        # A word that occurs twice in its sentence is one candidate, where it stands first.
        first = dict(zip(reversed(left), reversed(_quarters(len(left))), strict=True))
        here = [sources.setdefault(word, len(sources) + 1) for word in first]
        there = [targets.setdefault(word, len(targets)) for word in right]
        row = np.array([_NO_WORD, *here], dtype=np.int64) << 32
        keys.append((np.array(there, dtype=np.int64)[:, None] + row[None, :]).reshape(-1))
        places.append(np.tile([0, *first.values()], len(there)))
        target_places += _quarters(len(there))
        lengths += [len(row)] * len(there)
    combinations, entry = np.unique(np.concatenate(keys), return_inverse=True)
    begin = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return _PossibleLinks(
        entry.reshape(-1),
        np.concatenate(places),
        begin,
        np.array(target_places),
        combinations >> 32,
    )


def _learn(candidates: _PossibleLinks) -> NDArray[np.float64]:
    """t(target | source) of each combination; the first round begins with equal ones."""
    table = np.ones(len(candidates.source))
    num_sources = int(candidates.source.max()) + 1
    for _ in range(NUM_ROUNDS):
        weights = table[candidates.entry]
        weights /= np.repeat(np.add.reduceat(weights, candidates.begin), candidates.lengths)
        counts = np.bincount(candidates.entry, weights=weights, minlength=len(table))
        totals = np.bincount(candidates.source, weights=counts, minlength=num_sources)
        table = counts / np.maximum(totals[candidates.source], np.finfo(np.float64).tiny)
    return table


def _link(candidates: _PossibleLinks, table: NDArray[np.float64]) -> Numbers:
    """The most probable candidate of each target word; the first of equal ones."""
    weights = table[candidates.entry]
    best = np.repeat(np.maximum.reduceat(weights, candidates.begin), candidates.lengths)
    place = np.where(weights == best, np.arange(len(weights)), len(weights))
    return np.minimum.reduceat(place, candidates.begin)
