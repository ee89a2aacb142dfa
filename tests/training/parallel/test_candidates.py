"""Candidates: the k best of all logits, and the reference always among them."""

import pytest
import torch

from headwise.errors import UsageError
from headwise.training.parallel.candidates import best_tokens, force_gold


def test_chunks_give_the_best_of_all_logits(generator: torch.Generator) -> None:
    hidden = torch.randn(3, 5, 7, generator=generator)
    weight, bias = torch.randn(13, 7, generator=generator), torch.randn(13, generator=generator)
    expected = (hidden @ weight.T + bias).topk(4).indices
    assert torch.equal(best_tokens(hidden, weight, bias=bias, count=4, chunk_size=2), expected)
    assert best_tokens(hidden, weight, count=64).shape == (3, 5, 13)


def test_the_reference_is_always_among_the_candidates(generator: torch.Generator) -> None:
    candidates = torch.rand(5, 7, 11, generator=generator).topk(3).indices
    gold = torch.randint(11, (5, 7), generator=generator)
    forced, index = force_gold(candidates, gold)
    assert torch.equal(forced.gather(2, index[..., None])[..., 0], gold)
    held = (candidates == gold[..., None]).any(-1)
    assert 0 < held.sum() < held.numel()
    assert torch.equal(forced[held], candidates[held])
    assert torch.equal(forced[~held][:, :-1], candidates[~held][:, :-1])
    assert all(len(set(row)) == 3 for row in forced.flatten(0, 1).tolist())


def test_references_of_another_width_are_refused() -> None:
    with pytest.raises(UsageError, match="pad the references to the width"):
        force_gold(torch.zeros(2, 5, 3, dtype=torch.long), torch.zeros(2, 7, dtype=torch.long))
