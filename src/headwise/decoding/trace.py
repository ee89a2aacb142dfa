"""Records the search tree of a beam search: what was considered at each step, and what was kept.

For each step and sentence, every candidate (the 2k best continuations) is recorded with its total
log-probability and whether it was kept in a slot of the beam, finished, or pruned. Recording reads
the numbers of every step back from the device, so it is done only on request.
Tested by rebuilding the best hypothesis from the trace.
"""

from typing import Literal

from torch import Tensor

from headwise.decoding.results import SearchTrace, TracedToken
from headwise.decoding.search.candidates import Candidates
from headwise.decoding.search.selection import BeamChoice


class Tracer:
    """Collects the steps of every sentence of a batch until that sentence is done."""

    def __init__(self, num_sentences: int) -> None:
        self._steps: list[list[tuple[TracedToken, ...]]] = [[] for _ in range(num_sentences)]

    def record(
        self,
        sentences: Tensor,
        candidates: Candidates,
        chosen: BeamChoice,
        *,
        done: Tensor,
    ) -> None:
        """One step; `done` says which sentences were so before it."""
        columns = zip(
            candidates.parent.tolist(),
            candidates.token.tolist(),
            candidates.log_probability.tolist(),
            candidates.total.tolist(),
            chosen.score.tolist(),
            chosen.admitted.tolist(),
            strict=True,
        )
        possible = candidates.total.isfinite().tolist()
        slots = [
            {column: slot for slot, column in enumerate(places) if used[slot]}
            for places, used in zip(
                chosen.place.tolist(), chosen.beam.running.isfinite().tolist(), strict=True
            )
        ]
        over = done.tolist()
        for i, (number, columns_here) in enumerate(zip(sentences.tolist(), columns, strict=True)):
            if over[i]:
                continue
            step = []
            for column, (parent, token, value, total, scored, ended) in enumerate(
                zip(*columns_here, strict=True)
            ):
                if possible[i][column]:
                    slot = slots[i].get(column)
                    fate: Literal["kept", "pruned", "finished"]
                    fate = "finished" if ended else "pruned" if slot is None else "kept"
                    step.append(TracedToken(parent, token, value, total, scored, fate, slot))
            self._steps[number].append(tuple(step))

    def read(self) -> list[SearchTrace]:
        return [SearchTrace(tuple(steps)) for steps in self._steps]
