"""Candidates: the fast way to the best values gives what `topk` gives, and the totals are sums."""

import pytest
import torch

from headwise.decoding.search.candidates import take_best, weigh_best


@pytest.mark.parametrize(
    ("rows", "vocab", "count"), [(3, 37, 5), (3, 1283, 5), (7, 2560, 10), (2, 641, 2)]
)
def test_take_best_is_topk(generator, rows, vocab, count):
    scores = torch.randn(rows, vocab, generator=generator)
    scores[0] = float("-inf")
    scores[0, vocab - 1] = -3.0  # a row with one possible token, outside the last whole block
    values, places = take_best(scores, count)
    expected = scores.topk(count, dim=-1)
    assert torch.equal(values, expected.values)
    assert torch.equal(places[1:], expected.indices[1:])
    assert places[0, 0] == vocab - 1
    assert torch.equal(scores.gather(1, places), values)


def test_candidates_by_hand():
    scores = torch.tensor([[-1.0, -5.0, -2.0, -9.0], [-3.0, -1.0, -8.0, -9.0]])
    found = weigh_best(scores, torch.tensor([[-1.0, -2.0]]))
    assert found.total.tolist() == [[-2.0, -3.0, -3.0, -5.0]]
    assert sorted(zip(found.parent[0].tolist(), found.token[0].tolist(), strict=True)) == [
        (0, 0),
        (0, 2),
        (1, 0),
        (1, 1),
    ]
    assert found.ranked.tolist() == [[True, True, False, False]]
