"""Measures what a training will cost on this machine: parameters, time, memory (`train --check`).

It trains on a few rows of the real data and discards the result. Batches of 1, 2, 4 … rows are
timed until one takes long enough to be measured well; the line through the last two is extrapolated
to the whole batch. If other programs used the processor meanwhile, the message says so. The bytes
that the backward pass keeps are counted during the forward pass.

    seconds = steps · (accumulation · (a + b · rows) + optimiser)
    memory  = 16 bytes a trained weight (itself, its gradient, two moments) + 4 a frozen one
              + (c + d · rows)

On a GPU no time is given, because compiling takes longer than a check should. The memory is that of
weights, optimiser and one batch, without the program itself. `headwise plan` takes ten times as
long and says where the time goes. Tested with a step whose time and size are known.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headwise.language import say
from headwise.planning.cost_prediction import OPTIMIZER_BYTES
from headwise.planning.machine_timing import measure_bandwidth
from headwise.planning.units import clock_of, mebibytes
from headwise.tasks.events import Events
from headwise.training.choices import TrainingSettings
from headwise.training.precision import autocast, choose_device, choose_dtype
from headwise.training.prefetching import Batches
from headwise.training.updates import Trainable

LEARNING_BYTES, FROZEN_BYTES = 16, 4
ENOUGH = 0.3
"""Seconds of a step that are long enough to be measured well."""
TOO_LONG = 5.0
"""Seconds of a single row after which no larger batch is timed."""
MOST = 0.8
"""The share of one processor below which other programs must have used it."""
LONG = 3600.0
"""For a training of more seconds than this, the report says where to look for help."""


@dataclass(frozen=True)
class Trial:
    """A training step of any size, from which time and memory are predicted."""

    trainable: Trainable
    num_rows: int
    """Rows of a whole batch."""
    batch_of: Callable[[int], Any]
    """A batch of so many rows of the real data."""


@dataclass(frozen=True)
class TrainingCost:
    """Of a whole training; `seconds` is None where it is not told, `memory` in bytes."""

    parameters: int
    seconds: float | None
    memory: int
    stored: int = 0
    """Bytes of the finished model, where it is learnt in a single pass."""
    is_machine_busy: bool = False
    """Whether other programs used the processor during the measurement."""

    def as_results(self) -> dict[str, int]:
        """For the summary of `--check`."""
        found = {
            "parameters": self.parameters,
            "expected_memory_mib": max(1, round(self.memory / (1 << 20))),
        }
        return found if self.seconds is None else {**found, "expected_seconds": round(self.seconds)}

    def tell(self, watcher: Events, *, recipe_name: str = "RECIPE") -> dict[str, int]:
        """Say it, and give the results."""
        memory = mebibytes(max(self.memory, 1 << 20))
        if self.seconds is None:
            watcher.note(say(f"about {memory} of memory", f"约需内存 {memory}"))
        else:
            took = clock_of(self.seconds)
            watcher.note(
                say(
                    f"about {took} of training on this machine, and {memory} of memory",
                    f"在本机训练约需 {took}，约需内存 {memory}",
                )
                + self._caution()
                + self._hint(recipe_name)
            )
        return self.as_results()

    def _caution(self) -> str:
        """That the time of a free machine is shorter, if this one was not free."""
        if not self.is_machine_busy:
            return ""
        return say(
            " (other programs used the processor while this was measured: with the machine to "
            "itself the training takes less time)",
            "（测量时其他程序也在占用处理器：独占机器时训练用时会更短）",
        )

    def _hint(self, recipe_name: str) -> str:
        """Where to look for help with a long training."""
        if self.seconds is None or self.seconds < LONG:
            return ""
        return say(
            f"; `headwise plan {recipe_name}` says why and what helps",
            f"；`headwise plan {recipe_name}` 说明原因与改进办法",
        )


def measure_cost(trial: Trial, *, training: TrainingSettings) -> TrainingCost:
    """What a whole training costs, from a few steps of smaller batches.

    The network is left as it was, gradients and random numbers too.
    """
    module, rows = trial.trainable.module, trial.num_rows
    device = choose_device(training.device)
    dtype = choose_dtype(training.precision, torch.device("cpu"))

    def step(count: int) -> None:
        with autocast(torch.device("cpu"), dtype):
            trial.trainable.loss(trial.batch_of(count)).loss.backward()

    was_training = module.training
    module.train()
    with torch.random.fork_rng(devices=[]):
        kept = _kept_bytes(module, step, rows)
        share = ProcessorShare()
        batch = time_rows(step, rows) if device.type == "cpu" else None
        is_busy = device.type == "cpu" and share.is_taken()
    module.train(was_training)
    module.zero_grad(set_to_none=True)
    learning = sum(weight.numel() for weight in module.parameters() if weight.requires_grad)
    parameters = sum(weight.numel() for weight in module.parameters())
    seconds = None
    if batch is not None:
        optimizer = OPTIMIZER_BYTES * learning / measure_bandwidth(device)
        seconds = training.steps * (training.accumulation * batch + optimizer)
    fixed = LEARNING_BYTES * learning + FROZEN_BYTES * (parameters - learning)
    return TrainingCost(parameters, seconds, fixed + kept, is_machine_busy=is_busy)


class ProcessorShare:
    """Compares processor time with wall time: a calculation that waits for nothing has at least one
    processor, unless other programs take it.
    """

    def __init__(
        self,
        *,
        wall: Callable[[], float] = time.perf_counter,
        processor: Callable[[], float] = time.process_time,
    ) -> None:
        self._wall, self._processor = wall, processor
        self._began = wall(), processor()

    def is_taken(self) -> bool:
        """Whether this process had less than most of one processor since the beginning."""
        wall = self._wall() - self._began[0]
        return self._processor() - self._began[1] < MOST * wall


def first_batch(batches: Batches) -> Any:
    """The first batch of a training."""
    return next(batches.stream(None))[0]


def _kept_bytes(module: nn.Module, step: Callable[[int], object], rows: int) -> int:
    """Bytes that the backward pass of so many rows needs, from one row and two."""
    one = _count_kept(module, step, 1)
    return one if rows == 1 else one + (rows - 1) * max(0, _count_kept(module, step, 2) - one)


def _count_kept(module: nn.Module, step: Callable[[int], object], count: int) -> int:
    seen: dict[int, int] = {}
    weights = {weight.untyped_storage().data_ptr() for weight in module.parameters()}

    def keep(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in weights:
            seen[storage.data_ptr()] = storage.nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        step(count)
    return sum(seen.values())


def time_rows(
    step: Callable[[int], object], rows: int, *, now: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds of a step with so many rows, extrapolated from smaller ones where that is enough."""

    def timed(count: int) -> float:
        began = now()
        step(count)
        return now() - began

    first = timed(1)  # the first step loads libraries and finds memory: it is not typical
    if first > TOO_LONG:
        return first * rows
    known = [(1, first if first > ENOUGH else timed(1))]
    while known[-1][0] < rows and known[-1][1] < ENOUGH:
        count = min(rows, 2 * known[-1][0])
        known.append((count, timed(count)))
    if known[-1][0] >= rows:
        return known[-1][1]
    if len(known) == 1:
        known.append((2, timed(2)))
    (small, fast), (large, slow) = known[-2:]
    # Neither a row nor the rest of a step takes negative time. Without the upper bound, one
    # disturbed measurement would be multiplied by all rows.
    each = min(max(0.0, slow - fast) / (large - small), slow / large)
    return slow + (rows - large) * each
