"""Finds the nearest entries of a store, exactly: all distances in blocks, as products of matrices.

    |q - k|² = |q|² - 2 q·k + |k|²

The products are rounded, so that the order of near ties would depend on blocks and batches.
Therefore they only choose candidates, a few more than are wanted; the distances of the candidates
are computed again as sums of squared differences in double precision, and ties go to the entry that
was stored first. If more entries lie within the rounding error of the last one wanted than there
are candidates (sentences that begin alike have equal keys), the entries within that error are all
looked at.

Up to `RESIDENT_BYTES` of keys are held in memory in fp32. Those of a larger store are read from
disk block by block for every batch, so memory does not grow with the store.

Tested against: a table of all distances in numpy, with ties, and stores smaller than k.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.neighbours.store import NeighbourStore

RESIDENT_BYTES = 1 << 30
BLOCK_NUMBERS = 1 << 22
"""Numbers of a block of keys: 16 MiB in fp32."""
SPARE = 16
"""Candidates beyond those that are wanted."""
GATHERED_NUMBERS = 1 << 23
"""Numbers of candidates that are compared at once, 64 MiB in double precision."""


@dataclass(frozen=True)
class FoundNeighbours:
    """The nearest entries of each query, nearest first."""

    entries: Int[Tensor, "query neighbour"]
    tokens: Int[Tensor, "query neighbour"]
    distances: Float[Tensor, "query neighbour"]
    """Squared, in double precision."""

    def part(self, queries: slice) -> "FoundNeighbours":
        """Those of some of the queries."""
        return FoundNeighbours(self.entries[queries], self.tokens[queries], self.distances[queries])


class NearestSearch:
    """Exact search in one store."""

    def __init__(
        self,
        store: NeighbourStore,
        *,
        device: torch.device | None = None,
        resident_bytes: int = RESIDENT_BYTES,
    ) -> None:
        self.store = store
        self.device = torch.device("cpu") if device is None else device
        dim = store.header.model.dim
        self._blocks = store.key_blocks(max(1, BLOCK_NUMBERS // dim))
        self._held: list[Tensor] | None = None
        if len(store) * dim * 4 <= resident_bytes:
            self._held = [self._load(number) for number in range(len(self._blocks))]
        self._norms = [self._block(n).square().sum(1) for n in range(len(self._blocks))]
        self._longest = max(float(one.max()) for one in self._norms)
        self.tokens = torch.from_numpy(store.values).to(self.device)

    @torch.no_grad()
    def find(self, queries: Float[Tensor, "query dim"], count: int) -> FoundNeighbours:
        """The `count` nearest entries of each query, or all if there are fewer."""
        count = min(count, len(self.store))
        given = queries.detach().to(self.device, torch.float32)
        size = max(1, GATHERED_NUMBERS // ((count + SPARE) * given.shape[1]))
        parts = [self._find(part, count) for part in given.split(size)]
        entries, distances = (torch.cat([part[i] for part in parts]) for i in (0, 1))
        return FoundNeighbours(entries, self.tokens[entries], distances)

    def _find(self, queries: Tensor, count: int) -> tuple[Tensor, Tensor]:
        near, rough = self._candidates(queries, min(count + SPARE, len(self.store)))
        entries, distances = self._sort(queries, near, count)
        if near.shape[1] == len(self.store):
            return entries, distances
        # What is no candidate is at least as far as the last one, by the rounded products.
        lengths = queries.square().sum(1)
        error = 4 * (queries.shape[1] + 4) * 2**-24 * (lengths + self._longest)
        reach = distances[:, -1].float() - lengths + error
        unsure = (rough[:, -1] <= reach).nonzero()[:, 0].tolist()
        for row in unsure:
            within = self._within(queries[row], float(reach[row]))
            found = self._sort(queries[row : row + 1], within[None], count)
            entries[row], distances[row] = found[0][0], found[1][0]
        return entries, distances

    def _candidates(self, queries: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Entries with the smallest |k|² - 2 q·k, and these numbers, smallest first."""
        best = queries.new_full((len(queries), 0), torch.inf)
        entries = torch.zeros((len(queries), 0), dtype=torch.long, device=self.device)
        for number, (first, _) in enumerate(self._blocks):
            rough = self._rough(queries, number)
            low = rough.topk(min(count, rough.shape[1]), largest=False)
            best = torch.cat([best, low.values], dim=1)
            entries = torch.cat([entries, low.indices + first], dim=1)
            kept = best.topk(min(count, best.shape[1]), largest=False)
            best, entries = kept.values, entries.gather(1, kept.indices)
        return entries, best

    def _rough(self, queries: Tensor, number: int) -> Tensor:
        return torch.addmm(self._norms[number], queries, self._block(number).T, alpha=-2)

    def _within(self, query: Tensor, reach: float) -> Tensor:
        """All entries whose rounded number is at most `reach`, in the order of the store."""
        return torch.cat(
            [
                (self._rough(query[None], number)[0] <= reach).nonzero()[:, 0] + first
                for number, (first, _) in enumerate(self._blocks)
            ]
        )

    def _sort(self, queries: Tensor, near: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The `count` nearest of the candidates by exact distances; ties by their numbers."""
        near = near.sort(dim=1).values
        size = max(1, GATHERED_NUMBERS // (len(queries) * queries.shape[1]))
        exact = torch.cat(
            [
                (self._keys(part).double() - queries.double()[:, None]).square().sum(-1)
                for part in near.split(size, dim=1)
            ],
            dim=1,
        )
        order = exact.sort(dim=1, stable=True)
        kept = order.indices[:, :count]
        return near.gather(1, kept), order.values[:, :count]

    def _keys(self, entries: Tensor) -> Tensor:
        """The keys of some entries, [query, neighbour, dim]."""
        found = torch.empty((*entries.shape, self.store.header.model.dim), device=self.device)
        for number, (first, keys) in enumerate(self._blocks):
            here = (entries >= first) & (entries < first + len(keys))
            if not here.any():
                continue
            rows = entries[here] - first
            if self._held is not None:
                found[here] = self._held[number][rows]
            else:
                read = np.asarray(keys[rows.cpu().numpy()], dtype=np.float32)
                found[here] = torch.from_numpy(read).to(self.device)
        return found

    def _block(self, number: int) -> Tensor:
        return self._load(number) if self._held is None else self._held[number]

    def _load(self, number: int) -> Tensor:
        keys = np.array(self._blocks[number][1], dtype=np.float32)
        return torch.from_numpy(keys).to(self.device)
