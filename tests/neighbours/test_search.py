"""The search against a table of all distances: ties, stores smaller than k, many equal keys, keys
on disk and in memory, any block size."""

from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.neighbours import search
from headwise.neighbours.search import NearestSearch
from tests.neighbours.stores import make_store

DIM, ENTRIES, QUERIES = 5, 127, 11


def brute_force(keys: torch.Tensor, queries: torch.Tensor, count: int) -> tuple[np.ndarray, ...]:
    table = ((queries.double()[:, None] - keys.double()[None]) ** 2).sum(-1).numpy()
    order = np.argsort(table, axis=1, kind="stable")[:, :count]
    return order, np.take_along_axis(table, order, axis=1)


@pytest.mark.parametrize("resident", [0, 1 << 30])
@pytest.mark.parametrize("count", [1, 7, 127, 200])
def test_the_nearest_entries_are_those_of_the_table(
    count: int, resident: int, tmp_path: Path, generator: torch.Generator
) -> None:
    keys = torch.randn(ENTRIES, DIM, generator=generator)
    tokens = torch.randint(4, 19, (ENTRIES,), generator=generator)
    queries = torch.randn(QUERIES, DIM, generator=generator)
    store = make_store(tmp_path / "store", keys, tokens)
    found = NearestSearch(store, resident_bytes=resident).find(queries, count)
    order, distances = brute_force(keys, queries, count)
    np.testing.assert_array_equal(found.entries.numpy(), order)
    np.testing.assert_allclose(found.distances.numpy(), distances, rtol=1e-12)
    torch.testing.assert_close(found.tokens, tokens[found.entries])


@pytest.mark.parametrize("block", [DIM, 13 * DIM, 1 << 20])
def test_ties_go_to_the_entry_that_was_stored_first(
    block: int, tmp_path: Path, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More equal keys than candidates: sentences that begin alike have equal first states."""
    monkeypatch.setattr(search, "BLOCK_NUMBERS", block)
    few = torch.randn(3, DIM, generator=generator)
    keys = few[torch.randint(0, 3, (ENTRIES,), generator=generator)]
    queries = torch.cat([few, torch.randn(QUERIES, DIM, generator=generator)])
    tokens = torch.arange(ENTRIES)
    store = make_store(tmp_path / "store", keys, tokens)
    finder = NearestSearch(store)
    for count in (1, 5, 60):
        found = finder.find(queries, count)
        np.testing.assert_array_equal(found.entries.numpy(), brute_force(keys, queries, count)[0])
        alone = torch.cat([finder.find(one[None], count).entries for one in queries])
        torch.testing.assert_close(found.entries, alone)
