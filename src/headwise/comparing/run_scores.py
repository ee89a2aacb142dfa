"""Computes the scores of a comparison's variants from the files that each run saved.

All runs must have scored the same items; if the score is a mean over tokens, each item must have
the same number of tokens in all runs. A run with other items, or with an infinite score (an n-gram
model without smoothing gives a new word probability 0), gets a reason instead of an interval.

Tested with real runs of every task, and with hand-made files of scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headwise.comparing.run_processes import Outcome
from headwise.errors import HeadwiseError
from headwise.evaluation.item_means import have_same_items
from headwise.evaluation.several_seeds import SeedScores, Statistics
from headwise.language import say
from headwise.tasks.comparison_metrics import ComparisonMetrics


@dataclass(frozen=True)
class VariantScores:
    """The scores of a variant by metric, over its seeds; or why it has none."""

    by_metric: Mapping[str, SeedScores]
    problems: tuple[str, ...] = ()


def score_variants(
    outcomes: Sequence[Outcome], comparison_metrics: ComparisonMetrics
) -> dict[str, VariantScores]:
    """The scores of each variant, in the order of the runs."""
    found: dict[str, VariantScores] = {}
    asked: Mapping[str, Statistics] = {}
    for name in dict.fromkeys(outcome.run.variant for outcome in outcomes):
        finished = [
            outcome
            for outcome in outcomes
            if outcome.run.variant == name and outcome.results is not None
        ]
        if not finished or not comparison_metrics.is_scored:
            found[name] = VariantScores({})
            continue
        try:
            kept = [comparison_metrics.read(outcome.run.directory) for outcome in finished]
        except HeadwiseError as error:
            found[name] = VariantScores({}, (str(error),))
            continue
        asked = asked or kept[0]
        found[name] = _score(kept, asked)
    return found


def _score(
    kept: Sequence[Mapping[str, Statistics]], asked: Mapping[str, Statistics]
) -> VariantScores:
    """Of one variant, whose seeds kept these statistics; `asked`: those of the first variant."""
    if not all(have_same_items(one[metric], asked[metric]) for one in kept for metric in asked):
        problem = say(
            "its test set was read as other tokens than that of the first variant (another "
            "vocabulary, or files that have changed), so the scores cannot be compared",
            "其测试集切成的词元与第一个变体不同（词表不同，或文件已改变），分数无法比较",
        )
        return VariantScores({}, (problem,))
    totals = [one[metric].rows.sum(0) for one in kept for metric in one]
    if not all(np.isfinite(total).all() for total in totals):
        problem = say(
            "it gives a token of the test set the probability 0, so its score is infinite; "
            "choose a smoothing",
            "它给测试集中的某个词元以零概率，得分为无穷大；请选用一种平滑",
        )
        return VariantScores({}, (problem,))
    return VariantScores(
        {metric: SeedScores.of_statistics([one[metric] for one in kept]) for metric in kept[0]}
    )
