"""One update of the weights: loss and gradient of each batch, their mean over target tokens, clipped, guarded, applied.

    gradient = Σ over batches of ∂ loss sum / ∂ w, divided by the number of target tokens of all of them

so that `accumulation` batches give exactly the update of one large batch. Nothing here waits for the device: the numbers of
the log are summed there and read when a line is due.
Tested: accumulation equals the large batch in float64; a step with NaN changes nothing; clipping against the formula.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from headwise.training.averaging import MovingAverage
from headwise.training.capture import CapturedUpdate
from headwise.training.choices import TrainingSettings
from headwise.training.compilation import Compilation, compile_loss
from headwise.training.losses import LossSums
from headwise.training.optimizers import build_optimizer, measure_gradients, set_learning_rate, step_unless
from headwise.training.precision import autocast, choose_dtype
from headwise.training.window import Window


class Trainable(Protocol):
    """What the loop can train: a module, and the loss of a batch as sums. Tasks implement it."""

    @property
    def module(self) -> nn.Module: ...

    def loss(self, batch: Any) -> LossSums: ...


class Updater:
    """The optimiser, the moving average and the running sums around a trainable."""

    def __init__(
        self, trainable: Trainable, settings: TrainingSettings, *, device: torch.device, compilation: Compilation
    ) -> None:
        self.trainable, self.settings, self.device = trainable, settings, device
        self.optimizer = build_optimizer(settings.optimizer, trainable.module)
        self.average = None if settings.ema is None else MovingAverage(trainable.module, decay=settings.ema)
        self.sums = torch.zeros(Window.NUM_ALL, dtype=torch.float64, device=device)
        self._dtype = choose_dtype(settings.precision, device)
        self._loss = compile_loss(self._plain_loss, compilation, insist=settings.compile == "on")
        self._parameters = [parameter for parameter in trainable.module.parameters() if parameter.requires_grad]
        self._learn: Callable[[Sequence[Any]], None] = self._learn_from
        if compilation.cuda_graphs:
            self._learn = CapturedUpdate(self._learn_from, device, insist=settings.cuda_graphs == "on")

    def _plain_loss(self, batch: Any) -> LossSums:
        with autocast(self.device, self._dtype):
            return self.trainable.loss(batch)

    def update(self, batches: Sequence[Any], *, step: int, learning_rate: float) -> None:
        """Learn from batches that together make one global batch; `step` counts from 1."""
        set_learning_rate(self.optimizer, learning_rate)
        self._learn(batches)
        if self.average is not None:
            self.average.update(step)

    def _learn_from(self, batches: Sequence[Any]) -> None:
        """The update as operations on tensors alone, all on the device: what a CUDA graph can record."""
        sums = torch.zeros(3, dtype=torch.float64, device=self.device)
        for batch in batches:
            part = self._loss(batch)
            part.loss.backward()
            sums += torch.stack([number.detach().double() for number in part[:3]])
        norm, divisor = measure_gradients(self._parameters, divisor=sums[2].clamp(min=1), clip=self.settings.clip)
        skip = ~(norm.isfinite() & sums.isfinite().all())
        step_unless(self.optimizer, skip=skip, divisor=divisor)
        self.optimizer.zero_grad()
        self._record(sums, norm, skip)

    @torch.no_grad()
    def _record(self, sums: Tensor, norm: Tensor, skip: Tensor) -> None:
        """Add to the running sums, in the order of Window's fields; a skipped update counts only as skipped."""
        skipped = skip.double()
        measured = torch.where(skip, 0.0, torch.cat([sums, norm.double().reshape(1)]))
        in_a_row = (self.sums[6] + 1) * skipped
        counts = torch.stack([1 - skipped, skipped, in_a_row - self.sums[6], measured[2], skipped])
        self.sums += torch.cat([measured, counts])

    def read(self) -> Window:
        """Wait for the device and read the sums."""
        return Window(*self.sums.tolist())

    def start_window(self) -> None:
        self.sums[: Window.NUM_SINCE_LINE] = 0
