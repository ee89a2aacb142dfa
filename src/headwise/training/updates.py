"""Makes one update of the weights: loss and gradients of the batches, clipping, NaN guard, AdamW.

    gradient = (Σ over batches of ∂ loss sum / ∂ w) / (target tokens of all batches)

`accumulation` batches therefore give exactly the update of one large batch, and so do batches that
several processes share. The host never waits for the device: the numbers of the log are summed
there (log_window.py) and read when a line is due. Tested: accumulation equals the large batch in
float64; a step with NaN changes nothing; clipping against the formula.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from headwise.randomness import seed_from
from headwise.training.averaging import MovingAverage
from headwise.training.choices import TrainingSettings
from headwise.training.compilation import Compilation, compile_loss
from headwise.training.cuda_graph import CapturedUpdate
from headwise.training.log_window import NUM_LOSS_SUMS, DeviceSums
from headwise.training.losses import LossSums
from headwise.training.optimizers import (
    build_optimizer,
    measure_gradients,
    set_learning_rate,
    step_unless,
)
from headwise.training.precision import autocast, choose_dtype
from headwise.training.process_group import OneProcess, Processes
from headwise.weights import Weights, put_weights


class Trainable(Protocol):
    """What the loop can train: a module and the loss sums of a batch. Tasks implement it."""

    @property
    def module(self) -> nn.Module: ...

    def loss(self, batch: Any) -> LossSums: ...


@runtime_checkable
class Redrawn(Protocol):
    """A part of a module that draws new random numbers during training (Performer features)."""

    def before_step(self, step: int, *, key: str) -> None:
        """Draw the numbers of update `step`: a function of step and key alone, so that a resumed
        run has the same ones. Called outside of a recorded graph; tensors are changed in place.
        """
        ...


@runtime_checkable
class Measuring(Protocol):
    """A trainable that measures more than its loss; `LossSums.measured` holds the sums."""

    @property
    def measures(self) -> tuple[str, ...]:
        """The words under which log.jsonl has their means."""
        ...


class WeightLayout(Protocol):
    """How the processes hold the weights during training; see `distributed_model.py`."""

    @property
    def learner(self) -> Trainable:
        """What is trained; its tensors may be shards of those of the whole model."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether this process holds all weights, so that it could save them without the others."""
        ...

    @property
    def owns_gradients(self) -> bool:
        """Whether gradients must be set to zero after an update instead of being dropped."""
        ...

    def backward(self, loss: Tensor, *, is_last: bool) -> None:
        """Backward pass of one batch; after the last one, gradients are those of all processes."""
        ...

    def add_up_norm(self, norm: Tensor) -> Tensor:
        """The norm of the whole gradient from the norm of the part held here."""
        ...

    def gather(self, weights: Weights) -> Weights:
        """Whole tensors for the first process. All processes must call this."""
        ...

    def showing(self, average: MovingAverage | None) -> contextlib.AbstractContextManager[None]:
        """Inside, the first process has the whole model for validation, with averaged weights if
        any.
        """
        ...

    def put(self, target: Weights, source: Weights, *, file: Path | None) -> None:
        """Copy the whole tensors of the first process to all processes, which must all call
        this.
        """
        ...


class WholeModel:
    """The layout of a single process."""

    is_whole = True
    owns_gradients = False

    def __init__(self, trainable: Trainable) -> None:
        self.learner = trainable

    def backward(self, loss: Tensor, *, is_last: bool) -> None:
        loss.backward()

    def add_up_norm(self, norm: Tensor) -> Tensor:
        return norm

    def gather(self, weights: Weights) -> Weights:
        return weights

    def showing(self, average: MovingAverage | None) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if average is None else average.applied()

    def put(self, target: Weights, source: Weights, *, file: Path | None) -> None:
        put_weights(target, source, file=file)


class Updater:
    """The optimiser, the moving average and the running sums of a trainable."""

    def __init__(
        self,
        trainable: Trainable,
        settings: TrainingSettings,
        *,
        device: torch.device,
        compilation: Compilation,
        layout: WeightLayout | None = None,
        processes: Processes | None = None,
    ) -> None:
        self.layout, self.processes = layout or WholeModel(trainable), processes or OneProcess()
        self.learner = self.layout.learner
        self.settings, self.device = settings, device
        self.optimizer = build_optimizer(
            settings.optimizer, self.learner.module, layer_decay=settings.layer_decay
        )
        self.average = (
            None if settings.ema is None else MovingAverage(self.learner.module, decay=settings.ema)
        )
        self._measures = self.learner.measures if isinstance(self.learner, Measuring) else ()
        self.sums = DeviceSums(device, self._measures)
        self._dtype = choose_dtype(settings.precision, device)
        self.compilation = compilation
        insist = settings.compile == "on"
        self._loss = compile_loss(
            self._plain_loss, compilation, insist=insist, failed=self._note_plain
        )
        self._parameters = [
            parameter for parameter in self.learner.module.parameters() if parameter.requires_grad
        ]
        self._redrawn = [
            (name, part)
            for name, part in self.learner.module.named_modules()
            if isinstance(part, Redrawn)
        ]
        self._step = 0
        self._learn: Callable[[Sequence[Any]], None] = self._learn_from
        self._is_recorded = compilation.cuda_graphs
        if self._is_recorded:
            self._learn = CapturedUpdate(
                self._learn_from, device, insist=settings.cuda_graphs == "on"
            )

    def _note_plain(self) -> None:
        """The compiler failed: record that updates are uncompiled, so that a resumed run is too."""
        self.compilation = replace(self.compilation, enabled=False)

    def _plain_loss(self, batch: Any) -> LossSums:
        with autocast(self.device, self._dtype):
            return self.learner.loss(batch)

    def update(self, batches: Sequence[Any], *, step: int, learning_rate: float) -> None:
        """Train on batches that, with those of the other processes, form one global batch.

        `step` counts from 1.
        """
        set_learning_rate(self.optimizer, learning_rate)
        self._step = step
        for name, part in self._redrawn:
            part.before_step(step, key=f"{self.settings.seed}/{name}")
        self._seed(self.processes.number * len(batches))
        self._learn(batches)
        if self.average is not None:
            self.average.update(step)

    def _seed(self, number: int) -> None:
        """Seed dropout by the batch's number in the global batch: the same in every process."""
        torch.manual_seed(seed_from(self.settings.seed, "step", self._step, number))

    def _learn_from(self, batches: Sequence[Any]) -> None:
        """The update as operations on device tensors only, which a CUDA graph can record."""
        num_sums = NUM_LOSS_SUMS + 2 * len(self._measures)
        sums = torch.zeros(num_sums, dtype=torch.float64, device=self.device)
        for number, batch in enumerate(batches):
            if number and not self._is_recorded:  # a recorded update has one seed
                self._seed(self.processes.number * len(batches) + number)
            part = self._loss(batch)
            self.layout.backward(part.loss, is_last=number == len(batches) - 1)
            totals = (part.loss, part.negative_log_likelihood, part.num_tokens)
            found = torch.stack([total.detach().double() for total in totals])
            besides = [] if part.measured is None else [part.measured.detach().double()]
            sums += torch.cat([found, *besides])
        self.processes.add_up(sums)
        num_tokens = sums[NUM_LOSS_SUMS - 1]
        norm, divisor = measure_gradients(
            self._parameters,
            divisor=num_tokens.clamp(min=1),
            clip=self.settings.clip,
            add_up_norm=self.layout.add_up_norm,
        )
        skip = ~(norm.isfinite() & sums.isfinite().all())
        step_unless(self.optimizer, skip=skip, divisor=divisor)
        self.optimizer.zero_grad(set_to_none=not self.layout.owns_gradients)
        self.sums.add(sums, norm, skip=skip)
