"""Finds where sentences begin and end in a row, for patterns that refer to the first tokens.

A mask defines sentences in one of three ways:

    whole     no part about sentences: every row is one sentence
    padded    `Padding`: a row is one sentence, from its first real token to its last
    packed    `Segments`: several sentences share a row; each is the run of tokens with its number,
              and padding (number 0) forms runs too

A text must give the same result whatever else is in its batch, so positions are counted in the
sentence, never in the row. If a mask has both `Segments` and `Padding`, segments define the
sentences, and padding only hides keys.

Tested against: positions counted by hand; the laws (packed or padded, a sentence gives the same
result as alone).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int, Integer
from torch import Tensor

from headwise.attention.masks import Mask, Padding, Segments
from headwise.attention.refusals import name_able
from headwise.errors import MaskError


@dataclass(frozen=True, eq=False)
class Sentences:
    """For every token the first position of its sentence, and the position after its last. Padding
    counts as part of the sentence of its padded row."""

    start: Int[Tensor, "#batch time"]
    end: Int[Tensor, "#batch time"]
    rows: Literal["whole", "padded", "packed"]

    @property
    def length(self) -> int:
        return self.start.shape[1]

    @property
    def is_inside(self) -> Bool[Tensor, "#batch time"]:
        """Whether a token belongs to its sentence, and is not padding before or after it."""
        time = torch.arange(self.length, device=self.start.device)
        return (self.start <= time) & (time < self.end)


def find_sentences(mask: Mask, length: int, device: torch.device, *, kind: str) -> Sentences:
    """Check that each numbered sentence is contiguous. Done on a CPU only: on a GPU it would force
    a synchronisation, and packing never splits a sentence."""
    time = torch.arange(length, device=device)
    if numbers := [key for _, key in read_segments(mask)]:
        begins = torch.stack([_begins(one) for one in numbers]).any(0)
        # costs are counted with meta tensors, which have no data
        has_content = type(begins) is Tensor
        if device.type == "cpu" and has_content and not torch.compiler.is_compiling():
            _refuse_broken(numbers, begins, kind)
        ends = F.pad(begins[:, 1:], (0, 1), value=True)
        end = torch.where(ends, time + 1, length).flip(1).cummin(1).values.flip(1)
        return Sentences(_last_before(begins), end, "packed")
    if (real := real_tokens(mask)) is not None:
        start, behind = find_first(real)[:, None], find_first(real.flip(1))[:, None]
        return Sentences(start.expand(-1, length), (length - behind).expand(-1, length), "padded")
    return Sentences(torch.zeros_like(time)[None], torch.full_like(time, length)[None], "whole")


def real_tokens(mask: Mask) -> Bool[Tensor, "batch key"] | None:
    """The keys that are not padding; None where there is no padding."""
    real: Tensor | None = None
    for part in mask.parts:
        if isinstance(part, Padding):
            real = part.real if real is None else real & part.real
    return real


def find_first(real: Bool[Tensor, "batch key"]) -> Int[Tensor, " batch"]:
    """The position of the first real token of a padded row; 0 if there is none."""
    return real.long().argmax(1)


def count_in_runs(number: Integer[Tensor, "batch time"]) -> Int[Tensor, "batch time"]:
    """0, 1, 2 … from the start of each run of equal numbers."""
    return torch.arange(number.shape[1], device=number.device) - _last_before(_begins(number))


def _begins(number: Integer[Tensor, "batch time"]) -> Bool[Tensor, "batch time"]:
    return F.pad(number[:, 1:] != number[:, :-1], (1, 0), value=True)


def _last_before(is_marked: Bool[Tensor, "batch time"]) -> Int[Tensor, "batch time"]:
    """The last marked position up to each position."""
    time = torch.arange(is_marked.shape[1], device=is_marked.device)
    return torch.where(is_marked, time, 0).cummax(1).values


def read_segments(mask: Mask) -> list[tuple[Int[Tensor, "batch query"], Int[Tensor, "batch key"]]]:
    """The segment numbers of queries and of keys in every part that has some, all of one dtype and
    for the same number of rows; a single table stays single."""
    parts = [part for part in mask.parts if isinstance(part, Segments)]
    # Not default=1, which torch.compile cannot follow.
    num_rows = max([1, *(part.sizes[0] for part in parts)])
    pairs = []
    for part in parts:
        query, key = (number.long().expand(num_rows, -1) for number in (part.query, part.key))
        pairs.append((key if part.query is part.key else query, key))
    return pairs


def line_up(
    numbers: Sequence[Int[Tensor, "batch time"]], begin: Int[Tensor, " time"] | None = None
) -> tuple[Int[Tensor, "batch time"], Int[Tensor, "batch time"]]:
    """An order in which every sentence is contiguous (inside it as in `begin`, or in the original
    order), and the sentence at each place: 0, 1, 2 …

    Several divisions of a row are combined into one finer division. Segment numbers are only
    compared, so that they may be arbitrarily large: tokens are sorted by the last division, then by
    the one before it, and a new sentence begins where any of them changes.
    """
    order = None if begin is None else begin.expand_as(numbers[0])
    for number in reversed(numbers):
        by_number = (number if order is None else number.gather(1, order)).argsort(
            dim=1, stable=True
        )
        order = by_number if order is None else order.gather(1, by_number)
    assert order is not None
    begins = torch.stack([_begins(number.gather(1, order)) for number in numbers]).any(0)
    return order, begins.long().cumsum(1) - 1


def _refuse_broken(numbers: list[Tensor], begins: Tensor, kind: str) -> None:
    """Whether a sentence is split: there are more runs than sentences."""
    is_real = torch.stack([number != 0 for number in numbers]).all(0)
    order, run = line_up(numbers)
    num_stretches, num_sentences = (
        (begins & is_real).sum(1),
        (_begins(run) & is_real.gather(1, order)).sum(1),
    )
    again = (num_stretches > num_sentences).nonzero()[:, 0].tolist()
    if again:
        able, able_zh = name_able(lambda settings: not settings.whole_segments)
        raise MaskError(
            f"attention.kind={kind} was given segments in which a number comes back after another "
            f"one (row {again[0]}), but a sentence must be "
            "contiguous, or its first token and its blocks are undefined; reorder the "
            f"tokens, or use {able}",
            f"attention.kind={kind} 收到的分段中，有编号在别的编号之后再次出现（第 {again[0]} 行）"
            "，而一个句子必须连续，否则其首词元与分块无从谈起；"
            f"请重排词元，或使用 {able_zh}",
        )
