"""The choice among candidates against a loop over all of them."""

from collections.abc import Sequence

import numpy as np
import pytest

from headwise.decoding.parallel.noisy import Comparison, choose_candidates
from headwise.errors import UsageError


class TableJudge:
    """Log-probabilities from a random table, which depend on the source and on every token."""

    def __init__(self, seed: int) -> None:
        self.table = np.log(np.random.default_rng(seed).uniform(0.1, 1, (11, 11)))
        self.calls: list[int] = []

    def log_probabilities(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[float]:
        self.calls.append(len(sources))
        return [self.of(source, target) for source, target in zip(sources, targets, strict=True)]

    def of(self, source: Sequence[int], target: Sequence[int]) -> float:
        return float(sum(self.table[source[0], token] for token in (*target, 2)))


def drawn(seed: int) -> tuple[list[list[int]], list[list[list[int]]]]:
    generator = np.random.default_rng(seed)
    sources = [[int(generator.integers(3, 11))] for _ in range(7)]
    return sources, [
        [
            generator.integers(3, 11, generator.integers(0, 6)).tolist()
            for _ in range(generator.integers(1, 6))
        ]
        for _ in sources
    ]


@pytest.mark.parametrize("comparison", ["mean", "total"])
def test_it_is_the_best_of_a_loop(comparison: Comparison) -> None:
    (sources, candidates), judge = drawn(3), TableJudge(5)
    for source, some, verdict in zip(
        sources,
        candidates,
        choose_candidates(sources, candidates, judge=judge, comparison=comparison),
        strict=True,
    ):
        totals = [judge.of(source, one) for one in some]
        scores = [
            total / (len(one) + 1) if comparison == "mean" else total
            for total, one in zip(totals, some, strict=True)
        ]
        best = int(np.argmax(scores))
        assert verdict.number == best
        assert verdict.tokens == tuple(some[best])
        assert verdict.log_probability == totals[best]
        assert verdict.score == scores[best]
    assert len(judge.calls) == 1


def test_mean_and_total_differ_where_lengths_do() -> None:
    judge = TableJudge(5)
    judge.table[:] = -1.0
    judge.table[:, 4] = -0.5
    candidates = [[[], [4, 4, 4]]]  # totals -1 and -2.5, means -1 and -0.625
    for comparison, number in (("total", 0), ("mean", 1)):
        (verdict,) = choose_candidates(
            [[3]], candidates, judge=judge, comparison="mean" if comparison == "mean" else "total"
        )
        assert verdict.number == number


def test_equal_candidates_are_judged_once_and_the_first_wins() -> None:
    judge = TableJudge(5)
    judge.table[:, 5] = judge.table[:, 6] = judge.table[:, 7]
    candidates = [[[7], [6], [7], [6], [5]], [[6], [6]]]
    verdicts = choose_candidates([[3], [4]], candidates, judge=judge)
    assert [verdict.number for verdict in verdicts] == [0, 0]
    assert [verdict.tokens for verdict in verdicts] == [(7,), (6,)]
    assert judge.calls == [4]


def test_one_candidate_is_chosen_whatever_the_judge_says() -> None:
    sources, candidates = drawn(7)
    single = [some[:1] for some in candidates]
    verdicts = choose_candidates(sources, single, judge=TableJudge(9))
    assert [list(verdict.tokens) for verdict in verdicts] == [some[0] for some in single]


@pytest.mark.parametrize("candidates", [[[[5]], []], [[[5]]]])
def test_a_source_without_candidates_is_refused(candidates: list[list[list[int]]]) -> None:
    with pytest.raises(UsageError, match="each source needs at least one candidate"):
        choose_candidates([[3], [4]], candidates, judge=TableJudge(1))
