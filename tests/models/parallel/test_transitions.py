"""Transitions between candidates against the scores of single pairs of tokens."""

import torch

from headwise.initialization import initialize
from headwise.models.parallel.transitions import DynamicTransitions, LowRankTransitions

WORDS, RANK, DIM = 23, 3, 7


def test_static_scores_are_products_of_two_rows(generator: torch.Generator) -> None:
    transitions = LowRankTransitions(WORDS, rank=RANK)
    initialize(transitions, generator)
    candidates = torch.randint(WORDS, (2, 5, 4), generator=generator)
    scores = transitions(candidates)
    assert scores.shape == (2, 4, 4, 4)
    for pair, step, i, j in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        before, after = candidates[pair, step, i], candidates[pair, step + 1, j]
        expected = (transitions.left[before] * transitions.right[after]).sum()
        torch.testing.assert_close(scores[pair, step, i, j], expected)


def test_dynamic_scores_start_as_the_static_ones(generator: torch.Generator) -> None:
    transitions = DynamicTransitions(WORDS, dim=DIM, rank=RANK)
    initialize(transitions, generator)
    candidates = torch.randint(WORDS, (2, 5, 4), generator=generator)
    hidden = torch.randn(2, 5, DIM, generator=generator)
    torch.testing.assert_close(transitions(candidates, hidden), transitions.static(candidates))


def test_dynamic_scores_have_a_matrix_of_their_two_positions(generator: torch.Generator) -> None:
    transitions = DynamicTransitions(WORDS, dim=DIM, rank=RANK)
    initialize(transitions, generator)
    torch.nn.init.normal_(transitions.matrix.weight, generator=generator)
    candidates = torch.randint(WORDS, (1, 5, 2), generator=generator)
    hidden = torch.randn(1, 5, DIM, generator=generator)
    scores = transitions(candidates, hidden)
    pair = torch.cat([hidden[0, 2], hidden[0, 3]])
    matrix = transitions.matrix(transitions.hidden(pair).relu()).view(RANK, RANK)
    left = transitions.static.left[candidates[0, 2, 1]]
    right = transitions.static.right[candidates[0, 3, 0]]
    torch.testing.assert_close(
        scores[0, 2, 1, 0], left @ (torch.eye(RANK) + matrix) @ right, rtol=1e-5, atol=1e-5
    )
    changed = hidden.clone()
    changed[0, 4] += 1
    moved = transitions(candidates, changed)
    torch.testing.assert_close(moved[0, :3], scores[0, :3])
    assert not torch.allclose(moved[0, 3], scores[0, 3])


def test_full_rank_reaches_any_table(generator: torch.Generator) -> None:
    transitions = LowRankTransitions(5, rank=5)
    table = torch.randn(5, 5, generator=generator)
    transitions.left.data, transitions.right.data = table, torch.eye(5)
    everything = torch.arange(5).expand(1, 2, 5)
    torch.testing.assert_close(transitions(everything)[0, 0], table)
