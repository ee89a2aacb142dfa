"""Smooths n-gram models: from counts of n-grams to probabilities, also of unseen ones.

Every kind of smoothing answers three questions.

1. What is counted? How often an n-gram occurs (raw), or after how many different words (Kneser and
   Ney's continuation counts).
2. What is subtracted? A discount D(c) that depends on the count c, per order: none, one constant,
   Chen and Goodman's three, or Good and Turing's.
3. Where does this probability go? To the shorter context h', always (interpolated) or only for
   unseen words (backoff):

    interpolated   p(w|h) = (c(hw) - D) / c(h) + γ(h) p(w|h'),    γ(h) = Σ D / c(h)
    backoff        p(w|h) = (c(hw) - D) / c(h) if seen, else α(h) p(w|h'),
                   α(h) = γ(h) / (1 - Σ seen p(w|h'))

Here h is the context (the words before w) and h' the context without its first word. Both forms are
stored as p(w|h) of the seen n-grams and one weight for each context, as in ARPA files. Single words
are always interpolated with the uniform distribution 1/V over everything that can be predicted: all
words, `</s>` and the unknown word. So a word that was never seen gets a probability.

Maximum likelihood and add-k use no shorter context: p(w|h) = (c + k) / (c(h) + kV), and
k / (c(h) + kV) for the unseen.

Papers: Chen and Goodman 1998 ("An empirical study of smoothing techniques for language modeling"),
Heafield et al. 2013 (the conventions of `<s>` and of the unknown word).
Tested against: sums over the vocabulary, NLTK, a written-out recursion.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwise.models.ngram.choices import (
    AbsoluteDiscounting,
    AddK,
    Katz,
    KneserNey,
    MaximumLikelihood,
    ModifiedKneserNey,
    SmoothingSettings,
    StupidBackoff,
)
from headwise.models.ngram.counting import Integers, NgramCounts, continuation_counts
from headwise.models.ngram.tables import Level, NgramTables
from headwise.text.tokenizer import BOS, PAD

Floats = NDArray[np.float64]
FALLBACK = (0.5, 1.0, 1.5)
"""KenLM's discounts, used where no n-gram occurs once, twice, …: Chen and Goodman's need these."""
TINY = 1e-12


@dataclass(frozen=True)
class OrderEstimate:
    """Probabilities of one order's n-grams, and the weights of the contexts one order below."""

    probabilities: Floats
    weights: Floats


def estimate(tables: list[NgramCounts], smoothing: SmoothingSettings) -> NgramTables:
    """The probabilities of counted n-grams."""
    match smoothing:
        case MaximumLikelihood():
            return _add(tables, 0.0)
        case AddK():
            return _add(tables, smoothing.k)
        case StupidBackoff():
            return _stupid(tables, smoothing.factor)
        case AbsoluteDiscounting() | Katz():
            counts = [table.counts for table in tables]
        case KneserNey() | ModifiedKneserNey():
            counts = continuation_counts(tables)
    interpolated = not isinstance(smoothing, Katz) and smoothing.form == "interpolated"
    lower = _words(counts[0], find_discounts(counts[0][_predictable(len(counts[0]))], smoothing))
    estimates = [lower]
    for table, count in zip(tables[1:], counts[1:], strict=True):
        discounts = find_discounts(count, smoothing)
        lower = _longer(table, count, discounts, lower, interpolated=interpolated)
        estimates.append(lower)
    return _assemble(tables, estimates, falls_back=True)


def find_discounts(counts: Integers, smoothing: SmoothingSettings) -> Floats:
    """What is taken from a count of 0, 1, 2, …; the last entry holds for all larger ones."""
    # n₀, n₁, n₂, …
    occurring = np.bincount(np.minimum(counts, 101), minlength=102).astype(np.float64)
    match smoothing:
        case AbsoluteDiscounting() | KneserNey():
            constant = smoothing.discount
            if constant is None:
                n1, n2 = occurring[1:3]
                constant = n1 / (n1 + 2 * n2) if n1 > 0 and n2 > 0 else FALLBACK[0]
            return np.array([0.0, constant])
        case ModifiedKneserNey():
            n = occurring[1:5]
            found = FALLBACK
            if n.min() > 0:
                y = n[0] / (n[0] + 2 * n[1])
                found = tuple(k - (k + 1) * y * n[k] / n[k - 1] for k in (1, 2, 3))
            if not all(0 < taken < k for k, taken in enumerate(found, start=1)):
                found = FALLBACK
            return np.array([0.0, *found])
        case Katz():
            return _good_turing(occurring, smoothing.largest)
    raise AssertionError(smoothing)


def _good_turing(occurring: Floats, largest: int) -> Floats:
    """r is replaced by r* = (r + 1) nᵣ₊₁ / nᵣ, scaled so that n₁ is taken away in all.

    Only for as many r as have reliable counts.
    """
    for top in range(largest, 0, -1):
        r = np.arange(1, top + 1)
        if occurring[1 : top + 2].min() <= 0:
            continue
        rest = (top + 1) * occurring[top + 1] / occurring[1]
        if rest >= 1:
            continue
        ratio = ((r + 1) * occurring[2 : top + 2] / occurring[1 : top + 1] / r - rest) / (1 - rest)
        if ((ratio > 0) & (ratio < 1)).all():
            return np.array([0.0, *(r * (1 - ratio)), 0.0])
    return np.array([0.0, FALLBACK[0]])


def _predictable(size: int) -> NDArray[np.bool_]:
    predictable = np.ones(size, dtype=bool)
    predictable[[PAD, BOS]] = False
    return predictable


def _take(counts: Integers, discounts: Floats) -> Floats:
    return discounts[np.minimum(counts, len(discounts) - 1)]


def _words(counts: Integers, discounts: Floats) -> OrderEstimate:
    """Single words, interpolated with 1/V; what is never predicted has probability 0."""
    predictable = _predictable(len(counts))
    counts = np.where(predictable, counts, 0)
    total, taken = counts.sum(), _take(counts, discounts)
    probabilities = (counts - taken) / total + taken.sum() / total / predictable.sum()
    return OrderEstimate(np.where(predictable, probabilities, 0.0), np.empty(0))


def _longer(
    table: NgramCounts,
    counts: Integers,
    discounts: Floats,
    lower: OrderEstimate,
    *,
    interpolated: bool,
) -> OrderEstimate:
    num_contexts = len(lower.probabilities)
    contexts, taken = table.contexts, _take(counts, discounts)
    totals = np.bincount(contexts, counts, minlength=num_contexts)
    seen = totals > 0
    weights = np.ones(num_contexts)
    np.divide(np.bincount(contexts, taken, minlength=num_contexts), totals, out=weights, where=seen)
    shorter = lower.probabilities[table.suffixes]
    probabilities = (counts - taken) / totals[contexts]
    if interpolated:
        probabilities += weights[contexts] * shorter
        return OrderEstimate(probabilities, weights)
    unseen = 1.0 - np.bincount(contexts, shorter, minlength=num_contexts)
    # Where every word was seen, no unseen word can take what was freed: it goes back to the seen.
    everything = seen & ((unseen < TINY) | (weights < TINY))
    probabilities = np.where(everything[contexts], counts / totals[contexts], probabilities)
    np.divide(weights, unseen, out=weights, where=seen & ~everything)
    return OrderEstimate(probabilities, np.where(everything, TINY, weights))


def _stupid(tables: list[NgramCounts], factor: float) -> NgramTables:
    predictable = _predictable(len(tables[0].counts))
    counts = np.where(predictable, tables[0].counts, 0)
    unseen = predictable & (counts == 0)
    words = np.where(unseen, factor / predictable.sum(), counts / counts.sum())
    estimates = [OrderEstimate(words, np.empty(0))]
    for table in tables[1:]:
        below = len(estimates[-1].probabilities)
        totals = np.bincount(table.contexts, table.counts, minlength=below)
        estimates.append(
            OrderEstimate(table.counts / totals[table.contexts], np.where(totals > 0, factor, 1.0))
        )
    return _assemble(tables, estimates, falls_back=True)


def _add(tables: list[NgramCounts], k: float) -> NgramTables:
    predictable = _predictable(len(tables[0].counts))
    size = int(predictable.sum())
    counts = np.where(predictable, tables[0].counts, 0)
    words = np.where(predictable, (counts + k) / (counts.sum() + k * size), 0.0)
    estimates = [OrderEstimate(words, np.empty(0))]
    for table in tables[1:]:
        below = len(estimates[-1].probabilities)
        totals = np.bincount(table.contexts, table.counts, minlength=below) + k * size
        floors = np.divide(k, totals, out=np.zeros(below), where=totals > 0)
        estimates.append(OrderEstimate((table.counts + k) / totals[table.contexts], floors))
    return _assemble(tables, estimates, falls_back=False, floor=1.0 / size if k > 0 else 0.0)


def _assemble(
    tables: list[NgramCounts],
    estimates: list[OrderEstimate],
    *,
    falls_back: bool,
    floor: float = 0.0,
) -> NgramTables:
    """Logarithms, each context's weight beside its own probability."""
    levels = []
    with np.errstate(divide="ignore"):  # log 0 = -inf is meant
        for number, table in enumerate(tables):
            weights = (
                estimates[number + 1].weights
                if number + 1 < len(tables)
                else np.ones(len(table.keys))
            )
            levels.append(
                Level(
                    table.keys,
                    np.log(estimates[number].probabilities).astype(np.float32),
                    np.log(weights).astype(np.float32),
                )
            )
        return NgramTables(tuple(levels), falls_back=falls_back, floor=float(np.log(floor)))
