"""Holds the number of the current update, for objectives that change during training.

The share of the target that glancing shows, or of the right tokens that scheduled sampling keeps,
is a function of this number. It is a tensor, so that an update that was recorded as a CUDA graph
reads the new number. Tested with the losses that read it.
"""

import torch
from torch import Tensor, nn


class TrainingStep(nn.Module):
    """The number of the update; 0 before the first one.

    A compiled or recorded update reads `number`, a tensor; all others may read `count`.
    The training loop sets it (`training.updates.Redrawn`); it is no weight and is not saved.
    """

    number: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("number", torch.zeros(()), persistent=False)
        self.count = 0

    def before_step(self, step: int, *, key: str) -> None:
        self.number.fill_(step)
        self.count = step
