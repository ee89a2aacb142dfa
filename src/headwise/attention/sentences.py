"""Where sentences begin and end in packed rows, so that a pattern can speak of the first token of a sentence.

Several sentences share a row under segment numbers (masks.py); a token's sentence is the run of equal numbers around it. Without
segments the whole row is one sentence. Filling (number 0) forms runs too, which the mask hides.

Tested against: positions counted by hand.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from headwise.attention.masks import Mask, Segments


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


def find_sentences(mask: Mask, length: int, device: torch.device) -> Sentences:
    time = torch.arange(length, device=device)
    numbers = [part.key for part in mask.parts if isinstance(part, Segments)]
    if not numbers:
        return Sentences(torch.zeros_like(time)[None], torch.full_like(time, length)[None], is_packed=False)
    changes = torch.stack([(one[:, 1:] != one[:, :-1]) for one in numbers]).any(0)
    edge = torch.ones_like(numbers[0][:, :1], dtype=torch.bool)
    begins, ends = torch.cat([edge, changes], dim=1), torch.cat([changes, edge], dim=1)
    start = torch.where(begins, time, 0).cummax(1).values
    end = torch.where(ends, time + 1, length).flip(1).cummin(1).values.flip(1)
    return Sentences(start, end, is_packed=True)
