"""`TrainingStep`: the number of the update, for objectives that change during training.

The training loop sets it (`training.updates.Redrawn`); it is no weight and is not saved.
Tested through the objectives that read it.
"""

import torch
from torch import Tensor, nn


class TrainingStep(nn.Module):
    """The number as a tensor, which a compiled or recorded update reads, and as an integer."""

    number: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("number", torch.zeros(()), persistent=False)
        self.count = 0

    def before_step(self, step: int, *, key: str) -> None:
        self.number.fill_(step)
        self.count = step
