"""Where sentences begin and end in packed rows, so that a pattern can speak of the first token of a sentence.

Several sentences share a row under segment numbers (masks.py); a token's sentence is the run of equal numbers around it. Without
segments the whole row is one sentence. Filling (number 0) forms runs too, which the mask hides.

Tested against: positions counted by hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from headwise.attention.masks import Mask, Segments
from headwise.errors import MaskError


@dataclass(frozen=True, eq=False)
class Sentences:
    """For every token the first position of its sentence, and the position after its last."""

    start: Int[Tensor, "#batch time"]
    end: Int[Tensor, "#batch time"]
    is_packed: bool
    """Whether sentences may begin anywhere; otherwise every row is one."""

    @property
    def length(self) -> int:
        return self.start.shape[1]


def find_sentences(mask: Mask, length: int, device: torch.device, *, kind: str) -> Sentences:
    """Each sentence must stand in one stretch. Asked on a CPU only: a GPU would be waited for, and packing never breaks one."""
    time = torch.arange(length, device=device)
    numbers = [part.key for part in mask.parts if isinstance(part, Segments)]
    if not numbers:
        return Sentences(torch.zeros_like(time)[None], torch.full_like(time, length)[None], is_packed=False)
    changes = torch.stack([(one[:, 1:] != one[:, :-1]) for one in numbers]).any(0)
    edge = torch.ones_like(numbers[0][:, :1], dtype=torch.bool)
    begins, ends = torch.cat([edge, changes], dim=1), torch.cat([changes, edge], dim=1)
    start = torch.where(begins, time, 0).cummax(1).values
    has_content = type(begins) is Tensor  # costs are counted with tensors that have none
    if device.type == "cpu" and has_content and not torch.compiler.is_compiling():
        _refuse_broken(numbers, begins, kind)
    end = torch.where(ends, time + 1, length).flip(1).cummin(1).values.flip(1)
    return Sentences(start, end, is_packed=True)


def join_numbers(numbers: Sequence[Int[Tensor, "#batch time"]]) -> Int[Tensor, "batch time"]:
    """Two divisions of a row are one finer division: numbers from 0 on that are equal where all given ones are, and sorted as they are.

    Each is first counted through, so that no product leaves 64 bits, however large the numbers are; sizes do not depend on them. A single
    division is taken as it is: nothing is sorted for it.
    """
    if len(numbers) == 1:
        return numbers[0]
    joint = _count_through(numbers[0])
    for other in numbers[1:]:
        joint = _count_through(joint * (other.shape[1] + 1) + _count_through(other))
    return joint


def _count_through(number: Int[Tensor, "batch time"]) -> Int[Tensor, "batch time"]:
    """The smallest number of each row becomes 0, the next 1, …"""
    ordered, order = number.sort(dim=1)
    counted = F.pad((ordered[:, 1:] != ordered[:, :-1]).long().cumsum(1), (1, 0))
    return torch.zeros_like(number).scatter(1, order, counted)


def _refuse_broken(numbers: list[Tensor], begins: Tensor, kind: str) -> None:
    is_filling = torch.stack([number == 0 for number in numbers]).any(0)
    number = torch.where(is_filling, 0, 1 + join_numbers(numbers))
    first = torch.where(begins & (number != 0), number, -1 - torch.arange(number.shape[1])).sort(dim=1).values
    again = (first[:, 1:] == first[:, :-1]).any(1).nonzero()[:, 0].tolist()
    if again:
        raise MaskError(
            f"attention.kind={kind} was given segments in which a number comes back after another one (row {again[0]}), but a sentence must "
            "stand in one stretch, or its first token and its blocks mean nothing; reorder the tokens, or use attention.kind=window or fused",
            f"attention.kind={kind} 收到的分段中，有编号在别的编号之后再次出现（第 {again[0]} 行），而一个句子必须连续，否则其首词元与分块无从谈起；"
            "请重排词元，或使用 attention.kind=window 或 fused",
        )
