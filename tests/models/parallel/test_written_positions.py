"""The positions that write a target are the best increasing ones."""

from itertools import combinations

import torch

from headwise.models.parallel.written_positions import written_positions


def test_they_are_the_best_of_all_increasing_positions() -> None:
    generator = torch.Generator().manual_seed(8)
    for num_tokens in range(5):
        scores = torch.randn(7, num_tokens, generator=generator)
        every = list(combinations(range(7), num_tokens))
        values = [sum(float(scores[p, j]) for j, p in enumerate(one)) for one in every]
        best = every[max(range(len(every)), key=values.__getitem__)]
        assert tuple(written_positions(scores).tolist()) == best


def test_more_tokens_than_positions_share_the_last_one() -> None:
    assert written_positions(torch.zeros(2, 4)).tolist() == [0, 1, 1, 1]
