"""Computes the mean score of a recipe over several seeds, with a confidence interval.

Two things would differ in a repetition: the test set (a paired bootstrap with the same sentences
for every model, Koehn 2004) and the seed (initial weights, order of data). Their variances add up:

    variance of a mean       = var of its bootstrap draws + s² / n         s² over the n seeds
    variance of a difference = var of the paired draws + s²_a / n_a + s²_b / n_b   (Welch 1947)
    interval                 = value ± t(ν) · √variance,   ν = V² / Σ (V_i² / ν_i)
                                                           (Satterthwaite 1946)

V_i are the terms of a variance, ν_i their degrees of freedom, V their sum. A variance estimated
from 3 seeds is inaccurate, hence Student's t with few degrees of freedom ν. With one seed nothing
is known of the variance between seeds, and the interval speaks of these two models, not of their
recipes. With two seeds t is up to 12.7, and an interval may exceed the range of a score: it is then
cut and marked. Tested against: tables of Student's t, a hand-computed Welch test, the plain paired
bootstrap, coverage on simulated seeds.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headwise.evaluation.metric_statistics import SentenceStatistics, chunk_sizes, draw_counts
from headwise.randomness import numpy_generator

Draws = NDArray[np.float64]
SCALE = (0.0, 100.0)
"""The range of BLEU, chrF and an accuracy in percent."""


class Statistics(Protocol):
    """What each sentence adds to a score, a row each; the score is a function of their sum."""

    @property
    def rows(self) -> NDArray[np.float64]: ...

    def score_sums(self, sums: NDArray[np.float64]) -> NDArray[np.float64]: ...


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, or the difference of two, with its 95 % interval."""

    value: float
    low: float
    high: float
    p_value: float | None = None
    """Of a difference: the probability of one at least as large if there were none."""
    is_cut: bool = False
    """Whether the interval was cut at the ends of the range."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class SeedScores:
    """The corpus scores of one recipe, one a seed, and the same bootstrap draws for each: [seed,
    draw].
    """

    values: NDArray[np.float64]
    draws: Draws

    @staticmethod
    def of(
        metric: Any,
        hypotheses: Sequence[Sequence[str]],
        references: Sequence[str],
        *,
        num_draws: int = 1000,
        seed: int = 12345,
    ) -> "SeedScores":
        """`hypotheses` are the translations of each seed; the same `seed` draws the same
        sentences.
        """
        statistics = [SentenceStatistics.of(metric, each, [references]) for each in hypotheses]
        return SeedScores.of_statistics(statistics, num_draws=num_draws, seed=seed)

    @staticmethod
    def of_statistics(
        statistics: Sequence[Statistics], *, num_draws: int = 1000, seed: int = 12345
    ) -> "SeedScores":
        """From the statistics of each seed's outputs for the same sentences."""
        generator = numpy_generator(seed, "bootstrap")
        drawn: list[list[Draws]] = [[] for _ in statistics]
        for size in chunk_sizes(num_draws):
            counts = draw_counts(generator, len(statistics[0].rows), num_resamples=size)
            for own, each in zip(drawn, statistics, strict=True):
                own.append(each.score_sums(counts @ each.rows))
        return SeedScores(
            np.array([each.score_sums(each.rows.sum(0)[None])[0] for each in statistics]),
            np.stack([np.concatenate(own) for own in drawn]),
        )

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds; None for one seed."""
        return float(self.values.std(ddof=1)) if len(self.values) > 1 else None

    def estimate(self, ends: tuple[float, float] = SCALE) -> Estimate:
        """The mean; its interval is cut at the ends of the metric's range."""
        return _estimate(self.mean, self.draws.mean(0), [self], ends=ends)

    def difference(self, baseline: "SeedScores", ends: tuple[float, float] = SCALE) -> Estimate:
        """This score minus that of the baseline."""
        draws = self.draws.mean(0) - baseline.draws.mean(0)
        span = ends[1] - ends[0]
        return _estimate(
            self.mean - baseline.mean,
            draws,
            [self, baseline],
            ends=(-span, span),
            is_difference=True,
        )


def _estimate(
    value: float,
    draws: Draws,
    sides: Sequence[SeedScores],
    *,
    ends: tuple[float, float],
    is_difference: bool = False,
) -> Estimate:
    of_test = float(draws.var())
    of_seeds = [
        (side.spread**2 / len(side.values), len(side.values) - 1)
        for side in sides
        if side.spread is not None
    ]
    variance = of_test + sum(part for part, _ in of_seeds)
    doubt = sum(part**2 / freedom for part, freedom in of_seeds)
    freedom = variance**2 / doubt if doubt > 0 else math.inf
    reach = student_quantile(0.975, freedom) * math.sqrt(variance)
    p_value = None
    if is_difference:
        p_value = (
            1.0 if variance == 0 else 2 * student_tail(abs(value) / math.sqrt(variance), freedom)
        )
        p_value = 0.0 if variance == 0 and value != 0 else p_value
    low, high = max(value - reach, ends[0]), min(value + reach, ends[1])
    return Estimate(value, low, high, p_value, is_cut=(low, high) != (value - reach, value + reach))


def student_tail(t: float, freedom: float) -> float:
    """P(T > t) for t ≥ 0, by integrating the density (Simpson, in the angle atan(t/√ν))."""
    if math.isinf(freedom) or freedom > 1e6:
        return 0.5 * math.erfc(t / math.sqrt(2))
    # With t = √ν tan θ the density becomes cos^(ν-1) θ, smooth on a bounded interval.
    angles = np.linspace(0.0, math.atan(t / math.sqrt(freedom)), 4001)
    heights = np.cos(angles) ** (freedom - 1)
    weights = np.ones(4001)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0
    area = float((heights * weights).sum()) * (angles[1] - angles[0]) / 3
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    return max(0.0, 0.5 - scale * float(area))


def student_quantile(share: float, freedom: float) -> float:
    """The t below which this share (over one half) lies, by bisection."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > 1 - share else (low, middle)
    return (low + high) / 2
