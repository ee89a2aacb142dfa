"""Makes one selection of a beam search: which candidates finish, which continue, which sentences
are done.

Candidates that end the sentence (or reach its length limit) and rank among the first k compete for
the k finished places of their sentence. Of the others the k best continue. A sentence is done by
its stop rule or at its limit (`length_penalty.py`). The function never reads a value back from the
device, so that it serves the plain engine and also the steps that a GPU replays.
Tested through beam search, in both engines.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.decoding.search.back_pointers import Finished
from headwise.decoding.search.candidates import Candidates
from headwise.decoding.search.length_penalty import (
    LengthPenalty,
    StopRule,
    bound_score,
    check_stops,
    penalize,
)
from headwise.text.tokenizer import EOS

MINUS_INFINITY = float("-inf")


@dataclass(frozen=True)
class Beam:
    """The running and the finished hypotheses of all sentences still alive."""

    running: Float[Tensor, "sentence beam"]
    """Total log-probabilities; -inf where a slot is empty."""
    finished: Finished
    done: Bool[Tensor, "sentence"]
    limits: Int[Tensor, "sentence"]

    @staticmethod
    def fresh(
        limits: Int[Tensor, "sentence"], size: int, *, dtype: torch.dtype | None = None
    ) -> "Beam":
        running = torch.full((len(limits), size), MINUS_INFINITY, device=limits.device, dtype=dtype)
        # One slot starts at 0 and the others at -inf, or the first step would choose k equal ones.
        running[:, 0] = 0.0
        finished = Finished.none(len(limits), size, device=limits.device, dtype=dtype)
        return Beam(running, finished, torch.zeros_like(limits, dtype=torch.bool), limits)

    def select(self, sentences: Int[Tensor, "kept"]) -> "Beam":
        return Beam(
            self.running[sentences],
            self.finished.select(sentences),
            self.done[sentences],
            self.limits[sentences],
        )


@dataclass(frozen=True)
class BeamChoice:
    """What a step chose: the beam after it, and where each of its slots comes from."""

    beam: Beam
    parent: Int[Tensor, "sentence beam"]
    token: Int[Tensor, "sentence beam"]
    log_probability: Float[Tensor, "sentence beam"]
    place: Int[Tensor, "sentence beam"]
    """Numbers of the candidates that were given the slots."""
    score: Float[Tensor, "sentence candidate"]
    """Of every candidate, as if it ended here."""
    admitted: Bool[Tensor, "sentence candidate"]
    """Those that went among the finished."""

    @property
    def rows(self) -> Int[Tensor, "row"]:
        """The old row that each new one continues."""
        num_sentences, size = self.parent.shape
        first = torch.arange(num_sentences, device=self.parent.device)[:, None] * size
        return (self.parent + first).view(-1)


def select(
    beam: Beam,
    candidates: Candidates,
    *,
    length: int | Int[Tensor, "1"],
    penalty: LengthPenalty,
    stop: StopRule,
    extra: Float[Tensor, "sentence candidate"] | None = None,
) -> BeamChoice:
    """One step; `length` counts the tokens of each candidate, `extra` is added to scores."""
    at_limit = beam.limits == length
    ends = (candidates.token == EOS) | at_limit[:, None]
    score = penalize(penalty, candidates.total, length)
    score = score if extra is None else score + extra
    admitted = ends & candidates.ranked & ~beam.done[:, None] & (candidates.total > MINUS_INFINITY)
    finished = beam.finished
    # On a CPU looking costs nothing, and usually nothing ends here.
    if score.device.type != "cpu" or admitted.any():
        origin = torch.stack(
            [
                torch.zeros_like(candidates.parent) + (length - 1),
                candidates.parent,
                candidates.token,
            ],
            dim=-1,
        )
        taken = score.masked_fill(~admitted, MINUS_INFINITY)
        finished = finished.merge(
            Finished(taken, candidates.total, candidates.log_probability, origin)
        )
    _, place = candidates.priority.masked_fill(ends, MINUS_INFINITY).topk(
        beam.running.shape[1], dim=1
    )
    running = candidates.total.masked_fill(ends, MINUS_INFINITY).gather(1, place)
    best = bound_score(penalty, running.amax(1), length=length, limits=beam.limits, stop=stop)
    done = beam.done | at_limit | check_stops(best, finished.score[:, -1], stop=stop)
    return BeamChoice(
        Beam(running, finished, done, beam.limits),
        candidates.parent.gather(1, place),
        candidates.token.gather(1, place),
        candidates.log_probability.gather(1, place),
        place,
        score,
        admitted,
    )
