"""Groups of similar size: every pair is in one, and the padding has a bound."""

import torch

from headwise.training.parallel.graph_loss import graph_loss
from headwise.training.parallel.length_groups import length_groups
from tests.training.parallel.graphs import random_emissions, random_graph


def test_every_pair_is_in_one_group_of_similar_ones(generator: torch.Generator) -> None:
    counts = torch.randint(1, 361, (211,), generator=generator)
    for ratio in (1.2, 1.5, 2.0):
        groups = length_groups(counts, ratio=ratio)
        assert sorted(torch.cat(groups).tolist()) == list(range(211))
        for group in groups:
            assert counts[group].max() <= ratio * counts[group].min() + 1e-6
        largest = [int(counts[group].max()) for group in groups]
        assert largest == sorted(largest, reverse=True)


def test_a_loss_by_groups_is_the_loss(generator: torch.Generator) -> None:
    vertices, labels = [3, 17, 11, 2, 13], [2, 5, 3, 2, 7]
    links, emissions = random_graph(generator, vertices), random_emissions(generator, 5, 17, 7)
    counts = torch.tensor(vertices), torch.tensor(labels)
    found = torch.zeros(5, dtype=torch.double)
    for group in length_groups(counts[0]):
        width = int(counts[0][group].max())
        found[group] = graph_loss(
            emissions[group, :width],
            links[group, :width, :width],
            counts[0][group],
            counts[1][group],
        )
    torch.testing.assert_close(found, graph_loss(emissions, links, *counts))
