"""How ambiguous a parallel corpus is: how little a source word says about its translation.

A model that writes all words at once cannot see which of several right translations its other
words belong to, so it mixes them. Distilled text has fewer of them. Two numbers show it, over the
words that a simple alignment links:

    entropy        H(T | S) = - Σ_s p(s) Σ_t p(t | s) log2 p(t | s)      in bits for a linked word
    translations   Σ_s |{t linked to s}| / |{s}|                         different words for a word

Each target word is linked to the source word (or to none) of greatest t(target | source), with the
word-translation probabilities of IBM Model 1 (Brown et al. 1993), found by five rounds of
expectation maximisation. Zhou et al. 2020 (Understanding Knowledge Distillation in
Non-autoregressive Machine Translation) measure corpora so. Both numbers grow with the number of
pairs: compare corpora with the same sources.

Tested against: a dictionary (0 bits, one translation), coins (1 bit, two), the same estimate
written with dictionaries, and two wordings of the pocket corpus.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

NUM_ROUNDS = 5
_NO_WORD = 0
"""The empty source word, which target words without a counterpart are linked to."""

WordPair = tuple[Sequence[str], Sequence[str]]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Ambiguity:
    """Of one corpus."""

    entropy: float
    """Bits of a target word that its source word leaves open."""
    translations: float
    """Different target words of a source word, on average."""
    pairs: int

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class _Candidates:
    """Every target word with every source word of its pair, in one row after the other."""

    entry: Numbers
    """Number of the combination (source word, target word), [candidate]."""
    begin: Numbers
    """The first candidate of each target word, [target word of the corpus]."""
    source: Numbers
    """Source word of each combination, [combination]."""

    @property
    def lengths(self) -> Numbers:
        return np.diff(np.append(self.begin, len(self.entry)))


def measure_ambiguity(pairs: Sequence[WordPair]) -> Ambiguity:
    """Measure a corpus of words; pairs with an empty side are ignored."""
    usable = [pair for pair in pairs if pair[0] and pair[1]]
    if not usable:
        return Ambiguity(0.0, 0.0, 0)
    candidates = _list_candidates(usable)
    links = _link(candidates, _learn(candidates))
    links = links[candidates.source[links] != _NO_WORD]
    if not len(links):
        return Ambiguity(0.0, 0.0, len(usable))
    combinations, counts = np.unique(links, return_counts=True)
    sources, place = np.unique(candidates.source[combinations], return_inverse=True)
    totals = np.bincount(place, weights=counts)
    entropy = -(counts * np.log2(counts / totals[place])).sum() / counts.sum()
    return Ambiguity(
        float(abs(entropy)), len(combinations) / len(sources), len(usable)
    )  # abs: -0.0 is printed as such


def _list_candidates(pairs: Sequence[WordPair]) -> _Candidates:
    sources: dict[str, int] = {}
    targets: dict[str, int] = {}
    keys, lengths = [], []
    for left, right in pairs:
        # A word that occurs twice in its sentence is one candidate: which of them does not matter.
        here = sorted({sources.setdefault(word, len(sources) + 1) for word in left})
        there = [targets.setdefault(word, len(targets)) for word in right]
        row = np.array([_NO_WORD, *here], dtype=np.int64) << 32
        keys.append((np.array(there, dtype=np.int64)[:, None] + row[None, :]).reshape(-1))
        lengths += [len(row)] * len(there)
    combinations, entry = np.unique(np.concatenate(keys), return_inverse=True)
    begin = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return _Candidates(entry.reshape(-1), begin, combinations >> 32)


def _learn(candidates: _Candidates) -> NDArray[np.float64]:
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


def _link(candidates: _Candidates, table: NDArray[np.float64]) -> Numbers:
    """The most probable combination of each target word; of equals the first source word."""
    weights = table[candidates.entry]
    best = np.repeat(np.maximum.reduceat(weights, candidates.begin), candidates.lengths)
    place = np.where(weights == best, np.arange(len(weights)), len(weights))
    return candidates.entry[np.minimum.reduceat(place, candidates.begin)]
