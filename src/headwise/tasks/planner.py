"""Predicts from a recipe of any task the memory, speed and scaling of its training (the plan), or
the cost of a single pass (n-grams, word vectors).

    headwise plan base                         on this machine, measured in seconds
    headwise plan big --device h200 --gpus 64  from published figures
    headwise plan ptb-ngram                    measured on a part of the text

The task's training step (planned_step.py) is built on tensors without numbers and traced once. The
plan assumes that 98 of 100 positions of a row hold a token; planned_step.py lists the other
assumptions. What a single pass costs depends on the text, so it is made over a part of it.
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from headwise.attention.multi_head import MultiHeadAttention
from headwise.data.batching import Share
from headwise.errors import UsageError
from headwise.planning.available_memory import available_memory
from headwise.planning.cost_prediction import (
    Execution,
    MemoryParts,
    Parts,
    StepSeconds,
    Weights,
    extrapolate,
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
from headwise.planning.single_pass_plan import SinglePassPlan
from headwise.planning.smaller_batches import Proposal, propose
from headwise.planning.step_tracing import StepTrace, trace_step
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.events import Silence
from headwise.tasks.named_files import check_named_files
from headwise.tasks.planned_step import PlannedStep, choose_execution
from headwise.tasks.recipe import load_recipe
from headwise.tasks.table import find_task
from headwise.tasks.task import SinglePassTask
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
"""Of the loss that are traced: a step with more is extrapolated from two smaller ones, which takes
a second however large it is."""


def plan_recipe(
    recipe: AnyRecipe | str | Path,
    overrides: Sequence[str] = (),
    *,
    device: str | None = None,
    gpus: int = 1,
    memory: float | None = None,
    bandwidth: float | None = None,
) -> Plan | SinglePassPlan:
    """Predict a run by a recipe: here, or on a named device; memory in GiB, bandwidth between
    devices in GB/s.
    """
    if not isinstance(recipe, AnyRecipe):
        recipe = load_recipe(recipe, overrides)
    task = find_task(recipe)
    if isinstance(task, SinglePassTask):
        given = [
            name
            for name, value in (("--device", device), ("--bandwidth", bandwidth))
            if value is not None
        ]
        ignored = (*given, *(["--gpus"] if gpus > 1 else []))
        return plan_single_pass(task, recipe, memory=memory, ignored=ignored)
    task.check_training(recipe)
    step = task.planned_step(recipe)
    plan = plan_step(step, device=device, gpus=gpus, memory=memory, bandwidth=bandwidth)
    size = getattr(getattr(recipe, "text", None), "size", None)
    return replace(plan, vocabulary=size)


def plan_single_pass(
    task: SinglePassTask[Any, Any],
    recipe: AnyRecipe,
    *,
    memory: float | None = None,
    ignored: Sequence[str] = (),
) -> SinglePassPlan:
    """Predict a training in a single pass from its text; nothing is kept."""
    check_named_files(recipe)
    with tempfile.TemporaryDirectory(prefix="headwise-plan-") as temporary:
        prepared = task.prepare(recipe, Path(temporary), Silence())
        cost = task.predict_cost(recipe, prepared)
        sizes = task.sizes(recipe, prepared)
    free = available_memory(torch.device("cpu")) if memory is None else memory * GIB
    return SinglePassPlan(
        sizes=sizes,
        parameters=cost.parameters,
        memory=cost.memory,
        available=math.inf if free is None else free,
        seconds=cost.seconds,
        disk=cost.stored,
        ignored=tuple(ignored),
    )


def plan_step(
    step: PlannedStep,
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
    execution, here = choose_execution(step.training, device, num_devices=gpus)
    planner = Planner(step, execution, cuda=here is None or here.type == "cuda")
    hardware = DEVICES[device or ""] if here is None else planner.measure(here)
    timings = None if here is None or planner.cuda else planner.time_operations(here)
    link = None if bandwidth is None else bandwidth * 1e9
    hardware = hardware.with_limits(memory=None if memory is None else memory * GIB, link=link)
    group = Group(planner, hardware, timings, gpus)
    by_itself = planner if gpus == 1 else planner.under(choose_execution(step.training, device)[0])
    alone = Group(by_itself, hardware, timings, 1).share_batch()
    half = (
        Group(planner, hardware, timings, gpus // 2).share_batch()
        if gpus > 3 and not group.refusal
        else None
    )
    return planner.assemble(group, alone=alone, half=half)


class Planner:
    """A step under one way of execution; steps of each size are traced once."""

    def __init__(self, step: PlannedStep, execution: Execution, *, cuda: bool) -> None:
        self.step, self.execution, self.cuda = step, execution, cuda
        self.training, self.num_rows = step.training, step.num_rows
        self._traces: dict[int, StepTrace] = {}
        with torch.device("meta"):
            self.module = step.build(self.num_rows)
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
            num_copies=0 if step.training.ema is None else 1,
        )

    def under(self, execution: Execution) -> "Planner":
        """The same step under another way of execution; what was traced is not traced again."""
        other = Planner(self.step, execution, cuda=self.cuda)
        if execution.bf16 == self.execution.bf16:
            other._traces = self._traces
        return other

    def trace(self, rows: int) -> StepTrace:
        if rows not in self._traces:
            step = self.step.step(rows, bf16=self.execution.bf16, cuda=self.cuda)
            self._traces[rows] = trace_step(step)
        return self._traces[rows]

    def measure(self, device: torch.device) -> Hardware:
        """The machine at hand, at the shapes of this model; on a CPU those of a small batch,
        because time is short.
        """
        rows = min(self.num_rows, self._traced_rows if self.cuda else self._calibration_rows)
        return measure_machine(
            self.trace(rows), device, bf16=self.execution.bf16, memory=available_memory(device)
        )

    @property
    def _calibration_rows(self) -> int:
        return max(1, CALIBRATION_TOKENS // self.step.row)

    def seconds(self, hardware: Hardware, rows: int, *, timings: Timings | None) -> StepSeconds:
        """Of a batch of so many rows."""
        return self._extrapolate(
            rows,
            lambda seen: predict_seconds(
                self.trace(seen), self.weights, hardware, self.execution, timings=timings
            ),
        )

    @property
    def _traced_rows(self) -> int:
        """The largest batch that is traced itself."""
        chunk_size = self.step.chunk_size(self.num_rows, cuda=self.cuda)
        predicted = max(1, round(self.step.row * self.step.predicted))
        return max(2, MOST_CHUNKS * chunk_size // predicted)

    def _extrapolate(self, rows: int, predict: Callable[[int], Parts]) -> Parts:
        """What is predicted of so many rows; of more than are traced, on the line through two
        smaller numbers.
        """
        large = self._traced_rows
        if rows <= large:
            return predict(rows)
        small = large // 2
        return extrapolate(predict(small), predict(large), (rows - large) / (large - small))

    def time_operations(self, device: torch.device) -> Timings:
        """The operations of this step on the CPU at hand, at the shapes of a small batch where it
        is large.
        """
        return time_operations(
            self.trace(min(self.num_rows, self._calibration_rows)).operations, device
        )

    def memory(self, heap: float) -> MemoryParts:
        """Of the whole batch on one device."""
        accumulation = self.training.accumulation

        def predict(rows: int) -> MemoryParts:
            trace = self.trace(rows)
            return predict_memory(
                trace, self.weights, self.execution, accumulation=accumulation, heap=heap
            )

        return self._extrapolate(self.num_rows, predict)

    def rows_of_device(self, devices: int) -> int:
        """Rows of the largest batch one device takes: a part of one, or a whole one where batches
        are accumulated.
        """
        share = Share(0, devices, self.training.accumulation)
        return math.ceil(share.accumulation * self.num_rows / (devices * share.num_batches))

    @property
    def num_blocks(self) -> int:
        return len(list(blocks_of(self.module)))

    @property
    def layout(self) -> DeviceLayout:
        """As the recipe asks for it."""
        sharded = (
            isinstance(self.training.parallel, ShardedLayout) and self.execution.num_devices > 1
        )
        return DeviceLayout("sharded" if sharded else "replicated")

    def propose(self, memory: MemoryParts, room: float) -> Proposal:
        """A batch that fits into the room of one device; `memory` is that of the whole batch on
        one.
        """
        return propose(
            memory,
            rows=self.num_rows,
            row_tokens=self.step.row,
            accumulation=self.training.accumulation,
            devices=self.execution.num_devices,
            sharded=self.layout.parallel == "sharded",
            loss_space=LOSS_SPACE,
            room=room,
        )

    def assemble(self, group: "Group", *, alone: Scaling, half: Scaling | None) -> Plan:
        """Put memory, speed, layout and disk together; `alone` and `half`: what one device, and
        half of them, take for an update.
        """
        training, devices, hardware = self.training, group.devices, group.hardware
        num_rows, row = self.num_rows, self.step.row
        memory, layout = self.memory(hardware.heap), self.layout
        rows = num_rows if group.refusal else self.rows_of_device(devices)
        arranged = replace(
            arrange(memory, layout, devices=devices, num_blocks=self.num_blocks),
            activations=memory.activations * rows // num_rows,
        )
        seen = min(num_rows, self._traced_rows)
        run = PlannedRun(
            parameters=sum(weight.numel() for weight in self.module.parameters()),
            batch_rows=num_rows,
            source_row=self.step.source_row,
            target_row=row,
            tokens_per_step=FILLED * num_rows * row * training.accumulation,
            flops_per_token=self.trace(seen).flops / (FILLED * seen * row),
            steps=training.steps,
            has_attention=any(
                isinstance(part, MultiHeadAttention) for part in self.module.modules()
            ),
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
                rows=num_rows,
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
        try:
            self.planner.step.check_processes(self.devices)
        except UsageError as error:
            return error
        return None

    def share_batch(self) -> Scaling:
        """The recipe's batches shared by all."""
        accumulation = self.planner.training.accumulation
        rows = self.planner.rows_of_device(self.devices)
        return self._spread(rows, math.ceil(accumulation / self.devices))

    def repeat_batch(self) -> Scaling:
        """As many batches on each as the recipe has."""
        return self._spread(self.planner.num_rows, self.planner.training.accumulation)

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
