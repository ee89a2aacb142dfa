"""Paired significance tests of the difference between the corpus scores of two systems.

Both systems translated the same sentences, so the test is paired, which is much more sensitive than
comparing two intervals. d is the observed difference.

    bootstrap       resample the test set with replacement and compute d* on each resample; if
                    the systems were equal, d* would vary around 0 as it varies around its mean:
                    p = P(|d* - mean d*| ≥ |d|)   (Koehn 2004; Riezler & Maxwell 2005)
    randomization   swap the two outputs of each sentence with probability 1/2; if the systems
                    were equal, nothing would change:
                    p = P(|d of swapped| ≥ |d|)   (Noreen 1989; Riezler & Maxwell 2005)

Both count the observed difference as one of the draws, p = (count + 1) / (draws + 1), so p is never
0, and equal systems give p = 1 (sacreBLEU's strict `>` gives 1 / (draws + 1)). Randomization is the
better test; the bootstrap also gives an interval of the difference. Tested: equal systems, a
hand-enumerated case, and sacreBLEU's own tests.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from headwise.evaluation.metric_statistics import SentenceStatistics, chunk_sizes, draw_counts
from headwise.evaluation.translation import build_metrics, check_parallel
from headwise.randomness import numpy_generator

Method = Literal["bootstrap", "randomization"]
MetricName = Literal["bleu", "chrf", "ter"]

ROUNDING = 1e-9
"""Differences below this are rounding errors of floating-point sums."""


@dataclass(frozen=True)
class Comparison:
    """The difference between two systems in one metric. For TER, lower is better."""

    name: str
    baseline: float
    system: float
    difference: float
    """System minus baseline."""
    p_value: float
    method: Method
    num_draws: int
    signature: str
    low: float | None = None
    high: float | None = None
    """95 % interval of the difference (bootstrap only)."""

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def compare_systems(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    metric: MetricName = "bleu",
    method: Method = "randomization",
    num_draws: int = 1000,
    seed: int = 12345,
    metrics: dict[str, Any] | None = None,
) -> Comparison:
    """Test two systems on the same sentences.

    `metrics` (see `build_metrics`) sets language, tokenizer and case.
    """
    sets = check_parallel(baseline, references)
    check_parallel(system, references)
    chosen = (metrics or build_metrics())[metric]
    first = SentenceStatistics.of(chosen, baseline, sets)
    second = SentenceStatistics.of(chosen, system, sets)
    difference = second.score() - first.score()
    generator = numpy_generator(seed, method)
    low = high = None
    if method == "bootstrap":
        draws = _bootstrap(first, second, generator, num_draws)
        low, high = (float(bound) for bound in np.percentile(draws, [2.5, 97.5]))
        deviations = np.abs(draws - draws.mean())
    else:
        deviations = np.abs(_randomize(first, second, generator, num_draws))
    count = int((deviations >= abs(difference) - ROUNDING).sum())
    return Comparison(
        name=first.name,
        baseline=first.score(),
        system=second.score(),
        difference=difference,
        p_value=(count + 1) / (num_draws + 1),
        method=method,
        num_draws=num_draws,
        signature=str(chosen.get_signature()),
        low=low,
        high=high,
    )


def _bootstrap(
    first: SentenceStatistics,
    second: SentenceStatistics,
    generator: np.random.Generator,
    num_draws: int,
) -> NDArray[np.float64]:
    """Differences on resampled test sets; both systems are scored on the same resample."""
    differences = []
    for size in chunk_sizes(num_draws):
        counts = draw_counts(generator, len(first.rows), num_resamples=size)
        differences.append(
            second.score_sums(counts @ second.rows) - first.score_sums(counts @ first.rows)
        )
    return np.concatenate(differences)


def _randomize(
    first: SentenceStatistics,
    second: SentenceStatistics,
    generator: np.random.Generator,
    num_draws: int,
) -> NDArray[np.float64]:
    """Differences after swapping the outputs of a random half of the sentences."""
    total = first.rows.sum(0) + second.rows.sum(0)
    differences = []
    for size in chunk_sizes(num_draws):
        swapped = generator.integers(2, size=(size, len(first.rows))).astype(np.float64)
        one = first.rows.sum(0) + swapped @ (second.rows - first.rows)
        differences.append(second.score_sums(total - one) - first.score_sums(one))
    return np.concatenate(differences)
