"""The best path against all paths one by one."""

import torch

from headwise.training.parallel.graph_alignment import best_path
from tests.training.parallel.graphs import path_scores, paths, random_emissions, random_graph


def test_the_best_of_all_paths(generator: torch.Generator) -> None:
    vertices, labels = [7, 7, 6, 5, 2, 1, 3], [4, 3, 2, 5, 2, 1, 4]
    links = random_graph(generator, vertices, width=8)
    emissions = random_emissions(generator, len(vertices), 8, 6)
    found = best_path(emissions, links, torch.tensor(vertices), torch.tensor(labels)).tolist()
    for pair, (count, length) in enumerate(zip(vertices, labels, strict=True)):
        walks = list(paths(count, length))
        if not walks:
            assert found[pair] == [-1] * 6
            continue
        best = walks[int(path_scores(emissions[pair], links[pair], walks).argmax())]
        assert tuple(found[pair]) == best + (-1,) * (6 - length)


def test_a_path_is_valid_even_where_all_are_equal() -> None:
    links = torch.zeros(1, 5, 5).masked_fill(torch.ones(5, 5).tril().bool(), -torch.inf)
    found = best_path(torch.zeros(1, 5, 4), links, torch.tensor([5]), torch.tensor([4]))
    assert found.tolist() == [[0, 1, 2, 4]]
