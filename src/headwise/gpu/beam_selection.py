"""A GPU kernel for one selection step of a beam search.

In torch the step takes seventy kernels, each of which takes as long as its launch. Here one Triton
program handles one sentence. It goes through the best 2k candidates of the sentence in order: a
finished one replaces the worst finished hypothesis if it is better; the first k others are the new
beam. Visiting them in order makes the sorting and gathering of the torch form unnecessary; finished
hypotheses stay unsorted until they are read.

Tested against: decoding/search/selection.py.
"""

from dataclasses import dataclass

import triton
import triton.language as tl
from torch import Tensor

from headwise.gpu.early_launch import early_start, wait_for_last_kernel

LIKELY, FILLED, PROVEN = 0, 1, 2
STOPS = {"likely": LIKELY, "filled": FILLED, "proven": PROVEN}


@dataclass(frozen=True)
class BeamTensors:
    """What a selection step reads and overwrites; [sentence, slot] unless noted."""

    running: Tensor
    score: Tensor
    total: Tensor
    last: Tensor
    origin: Tensor
    """[sentence, slot, 3]: step, slot and last token of finished hypotheses."""
    done: Tensor
    limits: Tensor
    numbers: Tensor
    """[sentence]: columns of the history that belong to the sentences."""
    history: tuple[Tensor, Tensor, Tensor]
    """Parent, token and log-probability, [time, sentence number, slot]."""
    tokens: Tensor
    """[row]: the next input token."""
    rows: Tensor
    """[row]: the row that each row continues."""


@triton.jit
def _select(
    value_at, token_at, divisor_at, time_at, running_at, score_at, total_at, last_at, origin_at,
    done_at, limit_at, number_at, parents_at, tokens_at, values_at, next_at, row_at, time_stride,
    WIDTH: tl.constexpr, SLOTS: tl.constexpr, COUNT: tl.constexpr, PLACES: tl.constexpr,
    END: tl.constexpr, STOP: tl.constexpr, GROWS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    sentence = tl.program_id(0)
    nothing = float("-inf")
    slot, place = tl.arange(0, SLOTS), tl.arange(0, PLACES)
    offered = place < WIDTH * COUNT
    first = sentence * WIDTH
    wait_for_last_kernel(EARLY)
    length = tl.load(time_at)
    limit, done = tl.load(limit_at + sentence), tl.load(done_at + sentence) != 0
    at_limit = limit == length
    divisor = tl.load(divisor_at + length)
    history = (length - 1) * time_stride + tl.load(number_at + sentence) * WIDTH
    value = tl.load(value_at + first * COUNT + place, mask=offered, other=nothing)
    token = tl.load(token_at + first * COUNT + place, mask=offered, other=0)
    left = tl.load(running_at + first + place // COUNT, mask=offered, other=nothing) + value
    # Slots that only pad the vector hold the best score, so that none of them is ever the worst.
    score = tl.load(score_at + first + slot, mask=slot < WIDTH, other=float("inf"))
    tl.debug_barrier()  # the whole old beam is read before any part of the new one is written
    filled, top = 0, divisor * 0.0 + nothing
    for rank in range(2 * WIDTH):
        best, winner = tl.max(left, 0, return_indices=True)
        picked = place == winner
        left = tl.where(picked, nothing, left)
        new_token = tl.sum(tl.where(picked, token, 0), 0)
        new_value = tl.sum(tl.where(picked, value, 0.0), 0)
        parent = (winner // COUNT).to(tl.int64)
        ends = (new_token == END) | at_limit
        worst, weakest = tl.min(score, 0, return_indices=True)
        admitted = ends & (rank < WIDTH) & (done == 0) & (best > nothing) & (best / divisor > worst)
        score = tl.where((slot == weakest) & admitted, best / divisor, score)
        tl.store(total_at + first + weakest, best, mask=admitted)
        tl.store(last_at + first + weakest, new_value, mask=admitted)
        tl.store(origin_at + (first + weakest) * 3, length - 1, mask=admitted)
        tl.store(origin_at + (first + weakest) * 3 + 1, parent, mask=admitted)
        tl.store(origin_at + (first + weakest) * 3 + 2, new_token, mask=admitted)
        # Candidates are in order, so the first k that do not end are the beam; at the length limit
        # all end, and no beam is needed.
        stays = (ends == 0) & (filled < WIDTH)
        tl.store(running_at + first + filled, best, mask=stays)
        tl.store(next_at + first + filled, new_token, mask=stays)
        tl.store(row_at + first + filled, (first + parent).to(tl.int32), mask=stays)
        tl.store(parents_at + history + filled, parent, mask=stays)
        tl.store(tokens_at + history + filled, new_token, mask=stays)
        tl.store(values_at + history + filled, new_value, mask=stays)
        top = tl.where(stays & (filled == 0), best, top)
        filled += tl.where(stays, 1, 0)
    tl.store(score_at + first + slot, score, mask=slot < WIDTH)
    bound = top / (tl.load(divisor_at + limit) if STOP == 2 and GROWS else divisor)
    worst = tl.min(score, 0)
    over = done | at_limit | ((bound > worst) == 0)
    if STOP == 1:
        over = over | (worst > nothing)
    tl.store(done_at + sentence, over.to(tl.uint8))


def select(
    values: Tensor,
    tokens: Tensor,
    beam: BeamTensors,
    *,
    time: Tensor,
    divisors: Tensor,
    stop: str,
    grows: bool,
    end: int,
) -> None:
    """`decoding.selection.select` after `weigh_ranked`, in place. `divisors[n]` is what totals of
    length n are divided by."""
    num_sentences, width = beam.running.shape
    count = values.shape[1]
    _select[(num_sentences,)](
        values, tokens, divisors, time, beam.running, beam.score, beam.total, beam.last,
        beam.origin, beam.done, beam.limits, beam.numbers, *beam.history, beam.tokens, beam.rows,
        beam.history[0].stride(0),
        WIDTH=width, SLOTS=triton.next_power_of_2(width), COUNT=count,
        PLACES=triton.next_power_of_2(width * count), END=end,
        STOP=STOPS[stop], GROWS=grows, num_warps=1 if width * count <= 256 else 4,
        **early_start(values),
    )  # fmt: skip
