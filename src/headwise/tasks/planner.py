"""From a recipe to its plan: build it without content, watch one step, and predict memory, speed
and scaling.

    headwise plan base                         on the machine at hand, measured in seconds
    headwise plan big --device h200 --gpus 64  on paper

98 of 100 places of a row are assumed to be filled; planned_step.py says what else a recipe cannot
know.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from headwise.data.batching import Share
from headwise.errors import UsageError
from headwise.planning.available_memory import available_memory
from headwise.planning.cost_prediction import (
    Execution,
    MemoryParts,
    Parts,
    StepSeconds,
    Weights,
    draw_out,
    predict_memory,
    predict_seconds,
)
from headwise.planning.hardware import DEVICES, GIB, Hardware
from headwise.planning.machine_timing import Timings, measure_machine, time_operations
from headwise.planning.multi_device import (
    OVERLAP,
    DeviceLayout,
    Scaling,
    arrange,
    choose_layout,
    scale,
)
from headwise.planning.plan import Plan, PlannedRun
from headwise.planning.smaller_batches import Proposal, propose
from headwise.planning.step_tracing import StepTrace, trace_step
from headwise.tasks.planned_step import Subject, choose_execution
from headwise.tasks.recipe import load_translation_recipe
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.training.choices import ShardedLayout
from headwise.training.disk_space import count_run_bytes
from headwise.training.gradient_checkpointing import blocks_of
from headwise.training.losses import CHUNK_LOGITS_CUDA

FILLED = 0.98
MOST_DEVICES = 65_536
LOSS_SPACE = 16 * CHUNK_LOGITS_CUDA
"""Bytes of the largest chunk of the loss: four tables of its logits in fp32."""
CALIBRATION_TOKENS = 2048
"""On a CPU operations of larger batches are timed at this size."""
MOST_CHUNKS = 32
"""Of the loss that are watched: a step with more is drawn out from two smaller ones, which takes a
second however large it is."""


def plan_recipe(
    recipe: TranslationRecipe | str | Path,
    overrides: Sequence[str] = (),
    *,
    device: str | None = None,
    gpus: int = 1,
    memory: float | None = None,
    bandwidth: float | None = None,
) -> Plan:
    """Predict a run by a recipe: here, or on a named device; memory in GiB, bandwidth between
    devices in GB/s.
    """
    if not isinstance(recipe, TranslationRecipe):
        recipe = load_translation_recipe(recipe, overrides)
    return plan_subject(
        Subject.of(recipe), device=device, gpus=gpus, memory=memory, bandwidth=bandwidth
    )


def plan_subject(
    subject: Subject,
    *,
    device: str | None = None,
    gpus: int = 1,
    memory: float | None = None,
    bandwidth: float | None = None,
) -> Plan:
    if not 1 <= gpus <= MOST_DEVICES:
        raise UsageError(
            f"{gpus} devices are asked for; a plan is made for 1 to {MOST_DEVICES:,}: give --gpus "
            "a number of these",
            f"要求 {gpus} 个设备；计划只适用于 1 到 {MOST_DEVICES:,} 个：请为 --gpus 给出其中的数",
        )
    execution, here = choose_execution(subject.recipe, device, num_devices=gpus)
    planner = Planner(subject, execution, cuda=here is None or here.type == "cuda")
    hardware = DEVICES[device or ""] if here is None else planner.measure(here)
    timings = None if here is None or planner.cuda else planner.time_operations(here)
    link = None if bandwidth is None else bandwidth * 1e9
    hardware = hardware.with_limits(memory=None if memory is None else memory * GIB, link=link)
    group = Group(planner, hardware, timings, gpus)
    by_itself = planner if gpus == 1 else planner.under(choose_execution(subject.recipe, device)[0])
    alone = Group(by_itself, hardware, timings, 1).share_batch()
    half = (
        Group(planner, hardware, timings, gpus // 2).share_batch()
        if gpus > 3 and not group.refusal
        else None
    )
    return planner.assemble(group, alone=alone, half=half)


class Planner:
    """A subject under one way of execution; steps of each size are watched once."""

    def __init__(self, subject: Subject, execution: Execution, *, cuda: bool) -> None:
        self.subject, self.execution, self.cuda = subject, execution, cuda
        self.shape = subject.shape(subject.recipe.training.batch_tokens)
        self._traces: dict[int, StepTrace] = {}
        with torch.device("meta"):
            self.module = subject.module()
        tensors = {
            id(tensor): tensor.nbytes
            for tensor in (*self.module.parameters(), *self.module.buffers())
        }
        learning = sum(
            parameter.numel() for parameter in self.module.parameters() if parameter.requires_grad
        )
        self.weights = Weights(
            sum(tensors.values()),
            learning,
            num_copies=0 if subject.recipe.training.ema is None else 1,
        )

    def under(self, execution: Execution) -> "Planner":
        """The same subject under another way of execution; what was watched is not watched again."""
        other = Planner(self.subject, execution, cuda=self.cuda)
        if execution.bf16 == self.execution.bf16:
            other._traces = self._traces
        return other

    def trace(self, rows: int) -> StepTrace:
        if rows not in self._traces:
            step = self.subject.step(rows, bf16=self.execution.bf16, cuda=self.cuda)
            self._traces[rows] = trace_step(step)
        return self._traces[rows]

    def measure(self, device: torch.device) -> Hardware:
        """The machine at hand, at the shapes of this model; on a CPU those of a small batch,
        because time is short.
        """
        rows = min(self.shape.rows, self._watched_rows if self.cuda else self._calibration_rows)
        return measure_machine(
            self.trace(rows), device, bf16=self.execution.bf16, memory=available_memory(device)
        )

    @property
    def _calibration_rows(self) -> int:
        return max(1, CALIBRATION_TOKENS // self.shape.target)

    def seconds(self, hardware: Hardware, rows: int, *, timings: Timings | None) -> StepSeconds:
        """Of a batch of so many rows."""
        return self._drawn_out(
            rows,
            lambda seen: predict_seconds(
                self.trace(seen), self.weights, hardware, self.execution, timings=timings
            ),
        )

    @property
    def _watched_rows(self) -> int:
        """The largest batch that is watched itself."""
        chunk_size = self.subject.chunk_size(self.shape.rows, cuda=self.cuda)
        return max(2, MOST_CHUNKS * chunk_size // self.shape.target)

    def _drawn_out(self, rows: int, predict: Callable[[int], Parts]) -> Parts:
        """What is predicted of so many rows; of more than are watched, on the line through two
        smaller numbers.
        """
        large = self._watched_rows
        if rows <= large:
            return predict(rows)
        small = large // 2
        return draw_out(predict(small), predict(large), (rows - large) / (large - small))

    def time_operations(self, device: torch.device) -> Timings:
        """The operations of this step on the CPU at hand, at the shapes of a small batch where it
        is large.
        """
        return time_operations(
            self.trace(min(self.shape.rows, self._calibration_rows)).operations, device
        )

    def memory(self, heap: float) -> MemoryParts:
        """Of the whole batch on one device."""
        accumulation = self.subject.recipe.training.accumulation

        def predict(rows: int) -> MemoryParts:
            trace = self.trace(rows)
            return predict_memory(
                trace, self.weights, self.execution, accumulation=accumulation, heap=heap
            )

        return self._drawn_out(self.shape.rows, predict)

    def rows_of_device(self, devices: int) -> int:
        """Rows of the largest batch one device takes: a part of one, or a whole one where batches
        are accumulated.
        """
        share = Share(0, devices, self.subject.recipe.training.accumulation)
        return math.ceil(share.accumulation * self.shape.rows / (devices * share.num_batches))

    @property
    def num_blocks(self) -> int:
        return len(list(blocks_of(self.module)))

    @property
    def layout(self) -> DeviceLayout:
        """As the recipe asks for it."""
        sharded = (
            isinstance(self.subject.recipe.training.parallel, ShardedLayout)
            and self.execution.num_devices > 1
        )
        return DeviceLayout("sharded" if sharded else "replicated")

    def propose(self, memory: MemoryParts, room: float) -> Proposal:
        """A batch that fits into the room of one device; `memory` is that of the whole batch on
        one.
        """
        return propose(
            memory,
            rows=self.shape.rows,
            row_tokens=self.shape.target,
            accumulation=self.subject.recipe.training.accumulation,
            devices=self.execution.num_devices,
            sharded=self.layout.parallel == "sharded",
            loss_space=LOSS_SPACE,
            room=room,
        )

    def assemble(self, group: "Group", *, alone: Scaling, half: Scaling | None) -> Plan:
        """Put memory, speed, layout and disk together; `alone` and `half`: what one device, and
        half of them, take for an update.
        """
        training, shape, devices, hardware = (
            self.subject.recipe.training,
            self.shape,
            group.devices,
            group.hardware,
        )
        memory, layout = self.memory(hardware.heap), self.layout
        rows = shape.rows if group.refusal else self.rows_of_device(devices)
        arranged = replace(
            arrange(memory, layout, devices=devices, num_blocks=self.num_blocks),
            activations=memory.activations * rows // shape.rows,
        )
        seen = min(shape.rows, self._watched_rows)
        run = PlannedRun(
            parameters=self.weights.num_learning,
            batch_rows=shape.rows,
            source_row=shape.source,
            target_row=shape.target,
            tokens_per_step=FILLED * shape.rows * shape.target * training.accumulation,
            flops_per_token=self.trace(seen).flops / (FILLED * seen * shape.target),
            steps=training.steps,
            disk=count_run_bytes(self.module, training),
        )
        return Plan(
            hardware=hardware,
            execution=self.execution,
            run=run,
            memory=arranged,
            seconds=group.batch_seconds(rows),
            layout=layout,
            fitting=choose_layout(
                memory,
                devices=devices,
                num_blocks=self.num_blocks,
                rows=shape.rows,
                room=hardware.memory,
            ),
            smaller=self.propose(memory, hardware.memory),
            refusal=group.refusal,
            together=None if group.refusal else group.share_batch(),
            each=group.repeat_batch(),
            alone=alone,
            half=half,
        )


@dataclass(frozen=True)
class Group:
    """So many devices of a kind, and what they take for one update."""

    planner: Planner
    hardware: Hardware
    timings: Timings | None
    devices: int

    @property
    def refusal(self) -> UsageError | None:
        """Why the recipe's batch cannot be shared by all, as training would say it."""
        training = self.planner.subject.recipe.training
        try:
            Share(0, self.devices, training.accumulation).check(self.planner.shape.rows)
        except UsageError as error:
            return error
        return None

    def share_batch(self) -> Scaling:
        """The recipe's batches shared by all."""
        accumulation = self.planner.subject.recipe.training.accumulation
        rows = self.planner.rows_of_device(self.devices)
        return self._spread(rows, math.ceil(accumulation / self.devices))

    def repeat_batch(self) -> Scaling:
        """As many batches on each as the recipe has."""
        return self._spread(
            self.planner.shape.rows, self.planner.subject.recipe.training.accumulation
        )

    def batch_seconds(self, rows: int) -> StepSeconds:
        return self.planner.seconds(self.hardware, rows, timings=self.timings)

    def _spread(self, rows: int, num_batches: int) -> Scaling:
        return scale(
            _update_seconds(self.batch_seconds(rows), num_batches),
            gradient_bytes=4 * self.planner.weights.num_learning,
            devices=self.devices,
            link=self.hardware.link,
            parallel=self.planner.layout.parallel,
            # Compiled code hands over all gradients at its end: sending begins when nothing is left
            # to hide behind.
            overlap=0.0 if self.planner.execution.compiled else OVERLAP,
        )


def _update_seconds(batch: StepSeconds, num_batches: int) -> float:
    return num_batches * (batch.total - batch.optimizer) + batch.optimizer
