"""From a recipe to its plan: build it without content, watch one step, and predict memory, speed and scaling.

    headwise plan base                         on the machine at hand, measured in seconds
    headwise plan big --device h200 --gpus 64  on paper

What a recipe cannot know before its data is prepared is assumed: the largest vocabulary, source rows as long as target
rows, 98 of 100 places of a row filled.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from headwise.attention.fused import FusedAttention
from headwise.data.batching import Share
from headwise.data.packing import PackedBatch
from headwise.errors import UsageError
from headwise.models.choices import build_model
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.planning.available import available_memory
from headwise.planning.calibration import Timings, measure_machine, time_operations
from headwise.planning.hardware import DEVICES, GIB, Hardware
from headwise.planning.plan import Plan, PlannedRun
from headwise.planning.predicting import (
    Execution,
    MemoryParts,
    Parts,
    StepSeconds,
    Weights,
    draw_out,
    predict_memory,
    predict_seconds,
)
from headwise.planning.scaling import OVERLAP, Layout, arrange, choose_layout, scale
from headwise.planning.tracing import Step, StepTrace, trace_step
from headwise.tasks.recipe import Recipe, load_translation_recipe
from headwise.tasks.translation import RowShape, TranslationTask
from headwise.training.choices import ShardedLayout
from headwise.training.disk_space import count_run_bytes
from headwise.training.losses import choose_chunk_size
from headwise.training.parallel import decide_parallel_compilation
from headwise.training.precision import autocast, choose_device, choose_dtype
from headwise.training.recomputation import blocks_of, recomputing_blocks

FILLED = 0.98
CALIBRATION_TOKENS = 2048
"""On a CPU operations of larger batches are timed at this size."""
MOST_CHUNKS = 32
"""Of the loss that are watched: a step with more is drawn out from two smaller ones, which takes a second however large it is."""


class _FusedOnGpu(FusedAttention):
    """One kernel, with dropout too, and no weights stored: steps are watched on a CPU, where both would differ."""

    def stores_weights(self, q: Tensor, k: Tensor) -> bool:
        return False


@dataclass(frozen=True)
class Subject:
    """What is planned: a recipe with the sizes its data gave or will give."""

    recipe: Recipe
    source_size: int
    target_size: int
    source_row: int
    target_row: int

    @staticmethod
    def of(recipe: Recipe) -> "Subject":
        row = recipe.data.row_tokens
        return Subject(recipe, recipe.text.size, recipe.text.size, row, row)

    def shape(self, batch_tokens: int) -> RowShape:
        return RowShape(max(1, round(batch_tokens / self.target_row)), self.source_row, self.target_row)

    def chunk_size(self, rows: int, *, cuda: bool) -> int:
        """Tokens of one chunk of the loss."""
        return choose_chunk_size(rows * self.target_row, self.target_size, device="cuda" if cuda else "cpu")

    def module(self) -> EncoderDecoder:
        return build_model(
            self.recipe.model, source_size=self.source_size, target_size=self.target_size, generator=None
        )

    def step(self, rows: int, *, bf16: bool, cuda: bool = False) -> Step:
        """The loss of a batch of so many rows, as `Updater` would compute it; `cuda`: with attention as a GPU has it."""
        training = self.recipe.training

        @contextlib.contextmanager
        def opened() -> Iterator[tuple[nn.Module, Callable[[], Tensor]]]:
            module = self.module().train()
            for layer in module.attention_layers().values():
                if cuda and isinstance(layer.kernel, FusedAttention):
                    layer.kernel = _FusedOnGpu()
            chunk_size = self.chunk_size(rows, cuda=cuda)
            task = TranslationTask(module, training.objective.label_smoothing, chunk_size)
            source, target = (
                torch.ones(rows, length, dtype=torch.int64) for length in (self.source_row, self.target_row)
            )
            batch = PackedBatch(source, source, source, target, target, target, target)

            def loss() -> Tensor:
                with autocast(torch.device("cpu"), torch.bfloat16 if bf16 else torch.float32):
                    return task.loss(batch).loss

            again = recomputing_blocks(task.module) if training.recompute == "blocks" else contextlib.nullcontext()
            with again:
                yield task.module, loss

        return opened


def plan_recipe(
    recipe: Recipe | str | Path,
    overrides: Sequence[str] = (),
    *,
    device: str | None = None,
    gpus: int = 1,
    memory: float | None = None,
    bandwidth: float | None = None,
) -> Plan:
    """Predict a run by a recipe: here, or on a named device; memory in GiB, bandwidth between devices in GB/s."""
    if not isinstance(recipe, Recipe):
        recipe = load_translation_recipe(recipe, overrides)
    return plan_subject(Subject.of(recipe), device=device, gpus=gpus, memory=memory, bandwidth=bandwidth)


def plan_subject(
    subject: Subject,
    *,
    device: str | None = None,
    gpus: int = 1,
    memory: float | None = None,
    bandwidth: float | None = None,
) -> Plan:
    execution, here = choose_execution(subject.recipe, device, num_devices=gpus)
    planner = Planner(subject, execution, cuda=here is None or here.type == "cuda")
    hardware = DEVICES[device or ""] if here is None else planner.measure(here)
    timings = None if here is None or planner.cuda else planner.time_operations(here)
    pace = partial(planner.seconds, hardware, timings=timings)
    rows = planner.shape.rows
    whole = pace(rows)
    share = whole if gpus == 1 else pace(planner.rows_of_device(gpus))
    link = None if bandwidth is None else bandwidth * 1e9
    hardware = hardware.with_limits(memory=None if memory is None else memory * GIB, link=link)
    return planner.assemble(hardware, whole=whole, share=share, devices=gpus)


class Planner:
    """A subject under one way of execution; steps of each size are watched once."""

    def __init__(self, subject: Subject, execution: Execution, *, cuda: bool) -> None:
        self.subject, self.execution, self.cuda = subject, execution, cuda
        self.shape = subject.shape(subject.recipe.training.batch_tokens)
        self._traces: dict[int, StepTrace] = {}
        with torch.device("meta"):
            self.module = subject.module()
        tensors = {id(tensor): tensor.nbytes for tensor in (*self.module.parameters(), *self.module.buffers())}
        learning = sum(parameter.numel() for parameter in self.module.parameters() if parameter.requires_grad)
        self.weights = Weights(
            sum(tensors.values()), learning, num_copies=0 if subject.recipe.training.ema is None else 1
        )

    def trace(self, rows: int) -> StepTrace:
        if rows not in self._traces:
            step = self.subject.step(rows, bf16=self.execution.bf16, cuda=self.cuda)
            self._traces[rows] = trace_step(step)
        return self._traces[rows]

    def measure(self, device: torch.device) -> Hardware:
        """The machine at hand, at the shapes of this model; on a CPU those of a small batch, because time is short."""
        rows = min(self.shape.rows, self._watched_rows if self.cuda else self._calibration_rows)
        return measure_machine(self.trace(rows), device, bf16=self.execution.bf16, memory=available_memory(device))

    @property
    def _calibration_rows(self) -> int:
        return max(1, CALIBRATION_TOKENS // self.shape.target)

    def seconds(self, hardware: Hardware, rows: int, *, timings: Timings | None) -> StepSeconds:
        """Of a batch of so many rows."""
        return self._drawn_out(
            rows,
            lambda seen: predict_seconds(self.trace(seen), self.weights, hardware, self.execution, timings=timings),
        )

    @property
    def _watched_rows(self) -> int:
        """The largest batch that is watched itself."""
        chunk_size = self.subject.chunk_size(self.shape.rows, cuda=self.cuda)
        return max(2, MOST_CHUNKS * chunk_size // self.shape.target)

    def _drawn_out(self, rows: int, predict: Callable[[int], Parts]) -> Parts:
        """What is predicted of so many rows; of more than are watched, on the line through two smaller numbers."""
        large = self._watched_rows
        if rows <= large:
            return predict(rows)
        small = large // 2
        return draw_out(predict(small), predict(large), (rows - large) / (large - small))

    def time_operations(self, device: torch.device) -> Timings:
        """The operations of this step on the CPU at hand, at the shapes of a small batch where it is large."""
        return time_operations(self.trace(min(self.shape.rows, self._calibration_rows)).operations, device)

    def memory(self, heap: float) -> MemoryParts:
        """Of the whole batch on one device."""
        accumulation = self.subject.recipe.training.accumulation

        def predict(rows: int) -> MemoryParts:
            trace = self.trace(rows)
            return predict_memory(trace, self.weights, self.execution, accumulation=accumulation, heap=heap)

        return self._drawn_out(self.shape.rows, predict)

    def rows_of_device(self, devices: int) -> int:
        """Rows of the largest batch one device takes: a part of one, or a whole one where batches are accumulated."""
        share = Share(0, devices, self.subject.recipe.training.accumulation)
        return math.ceil(share.accumulation * self.shape.rows / (devices * share.num_batches))

    @property
    def num_blocks(self) -> int:
        return len(list(blocks_of(self.module)))

    def assemble(self, hardware: Hardware, *, whole: StepSeconds, share: StepSeconds, devices: int) -> Plan:
        """Put memory, speed, layout and disk together; seconds of a whole batch on one device, and of its share of one."""
        training, shape = self.subject.recipe.training, self.shape
        memory = self.memory(hardware.heap)
        sharded = isinstance(training.parallel, ShardedLayout) and devices > 1
        asked = Layout("sharded" if sharded else "replicated")
        activations = memory.activations * self.rows_of_device(devices) // shape.rows
        arranged = replace(arrange(memory, asked, devices=devices, num_blocks=self.num_blocks), activations=activations)
        fitting = choose_layout(
            memory, devices=devices, num_blocks=self.num_blocks, rows=shape.rows, room=hardware.memory
        )
        spread = partial(
            scale,
            gradient_bytes=4 * self.weights.num_learning,
            devices=devices,
            link=hardware.link,
            parallel=asked.parallel,
            # Compiled code hands over all gradients at its end: sending begins when nothing is left to hide behind.
            overlap=0.0 if self.execution.compiled else OVERLAP,
        )
        seen = min(shape.rows, self._watched_rows)
        tokens = FILLED * shape.rows * shape.target
        run = PlannedRun(
            parameters=self.weights.num_learning,
            batch_rows=shape.rows,
            source_row=shape.source,
            target_row=shape.target,
            tokens_per_step=tokens * training.accumulation,
            flops_per_token=self.trace(seen).flops / (FILLED * seen * shape.target),
            steps=training.steps,
            disk=count_run_bytes(self.module, training),
        )
        together = spread(_update_seconds(share, math.ceil(training.accumulation / devices)))
        each = spread(_update_seconds(whole, training.accumulation))
        return Plan(hardware, self.execution, run, arranged, share, asked, fitting, together, each)


def _update_seconds(batch: StepSeconds, num_batches: int) -> float:
    return num_batches * (batch.total - batch.optimizer) + batch.optimizer


def choose_execution(
    recipe: Recipe, device: str | None, *, num_devices: int = 1
) -> tuple[Execution, torch.device | None]:
    """How the run would be executed, by training's own rules, and the device at hand it is measured on (None: on paper)."""
    training = recipe.training
    if device in (None, "cpu"):
        here = torch.device("cpu") if device == "cpu" else choose_device(training.device)
        bf16 = choose_dtype(training.precision, here) == torch.bfloat16
    elif device in DEVICES:
        here, bf16 = None, training.precision != "fp32"
    else:
        names = ", ".join(["cpu", *DEVICES])
        raise UsageError(
            f"no device {device!r} is known; choose one of {names}, or leave --device out to plan for this machine",
            f"不认识设备 {device!r}；可选：{names}；不写 --device 则为本机做计划",
        )
    decision = decide_parallel_compilation(
        training, here or torch.device("cuda"), alone=num_devices == 1, elsewhere=here is None
    )
    return Execution(bf16, decision.enabled, decision.cuda_graphs, num_devices), here
