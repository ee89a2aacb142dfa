"""Which drafts are accepted, on a table worked out by hand."""

import pytest
import torch

from headwise.decoding.drafting.acceptance import ExactAcceptance, RelaxedAcceptance

SCORES = torch.tensor([[[-1.0, -0.5, -3.0, -float("inf")]]]).expand(1, 4, 4)
DRAFTS = torch.tensor([[0, 1, 2, 3]])
BEST = torch.ones_like(DRAFTS)


def test_exact_takes_the_best_alone() -> None:
    assert ExactAcceptance().allows(SCORES, BEST, DRAFTS).tolist() == [[False, True, False, False]]


@pytest.mark.parametrize(
    ("top", "gap", "allowed"),
    [
        (1, 9.0, [False, True, False, False]),
        (9, 0.0, [False, True, False, False]),
        (2, 9.0, [True, True, False, False]),
        (3, 1.0, [True, True, False, False]),
        (3, 2.5, [True, True, True, False]),
        (9, 99.0, [True, True, True, False]),  # what is forbidden is never near
    ],
)
def test_relaxed_takes_what_is_near(top: int, gap: float, allowed: list[bool]) -> None:
    rule = RelaxedAcceptance(top=top, gap=gap)
    assert rule.allows(SCORES, BEST, DRAFTS).tolist() == [allowed]
