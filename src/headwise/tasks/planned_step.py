"""`PlannedStep`: the training step that `headwise plan` traces to predict memory and time.

It is the task's real model and loss on tensors that have shapes but no numbers. A task describes it
(`TrainedTask.planned_step`): how to build the model, the cost of a batch of n rows, and the sizes
of a batch. A recipe does not know its data, so the step assumes the largest vocabulary, rows
without padding, and sentences of equal length. `planner.py` does the rest, for every task.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headwise.data.batching import Share
from headwise.errors import UsageError
from headwise.planning.cost_prediction import Execution
from headwise.planning.hardware import DEVICES
from headwise.planning.step_tracing import Step
from headwise.settings.kind import Words
from headwise.tasks.shape_only_modules import make_contentless
from headwise.text.tokenizer_pair import load_tokenizers
from headwise.training.choices import TrainingSettings
from headwise.training.distributed_model import decide_parallel_compilation
from headwise.training.gradient_checkpointing import recomputing_blocks
from headwise.training.losses import choose_chunk_size
from headwise.training.precision import autocast, choose_device, choose_dtype
from headwise.training.updates import Trainable


@dataclass(frozen=True)
class Vocabularies:
    """How many tokens a model knows."""

    source: int
    target: int
    """Of the target, or of the only text."""


def find_vocabularies(size: int, bundle: Path | None) -> Vocabularies:
    """Those of a bundle; without one, the largest that `text.size` allows."""
    if bundle is None:
        return Vocabularies(size, size)
    tokenizers = load_tokenizers(bundle / "tokenizer")
    return Vocabularies(tokenizers.source.size, tokenizers.target.size)


@dataclass(frozen=True)
class Sample:
    """What `headwise describe` counts the operations of."""

    title: Words = ("One sentence ({length} tokens)", "一个句子（{length} 个词元）")
    item: Words = ("token", "词元")
    """One element of it."""
    length: int | None = None
    """How many items it has; None: as many as the user asks for."""


SENTENCE_PAIR = Sample(
    (
        "One pair of sentences ({length} + {length} tokens)",
        "一对句子（{length} + {length} 个词元）",
    ),
    ("pair of tokens", "对词元"),
)


@dataclass(frozen=True)
class PlannedStep:
    """A training step of a recipe, as shapes."""

    training: TrainingSettings
    """With what `auto` means for this model."""
    build: Callable[[int], nn.Module]
    """The module, its weights not filled, for batches of so many rows."""
    trainable: Callable[[nn.Module, int], Trainable]
    """The loss of the module, with so many tokens in a chunk."""
    batch: Callable[[int, int], Any]
    """A batch of so many rows of so many tokens: shapes and types count, the numbers do not."""
    row: int
    """Tokens of a row, of the target where there are two sides."""
    source_row: int | None = None
    """Tokens of a source row; None where there is one text only."""
    num_logits: int = 1
    """Numbers that the loss computes for each predicted token."""
    predicted: float = 1.0
    """The share of a row's tokens that the loss predicts."""
    sample: Sample = Sample()
    """One sample of the data, where that is no sentence of tokens."""
    refuse_share: Callable[[Share, int, int], None] = Share.check
    """Refuses a number of processes that cannot share an update of batches of so many rows of so
    many tokens: each takes at least one row, if the task does not say otherwise."""

    @property
    def described(self) -> Sample:
        """The sample, or a pair of sentences where there are two sides."""
        return self.sample if self.source_row is None else SENTENCE_PAIR

    @property
    def num_rows(self) -> int:
        """Rows of a whole batch."""
        return max(1, round(self.training.batch_tokens / self.row))

    def check_processes(self, count: int) -> None:
        """Refuse a number of processes that cannot share an update."""
        self.refuse_share(Share(0, count, self.training.accumulation), self.num_rows, self.row)

    def chunk_size(self, rows: int, *, cuda: bool) -> int:
        """Tokens of one chunk of the loss."""
        num_tokens = max(1, round(rows * self.row * self.predicted))
        return choose_chunk_size(num_tokens, self.num_logits, device="cuda" if cuda else "cpu")

    def step(self, rows: int, *, bf16: bool, cuda: bool = False) -> Step:
        """The loss of a batch of so many rows, as `Updater` would compute it; `cuda`: with
        attention as a GPU has it.
        """

        @contextlib.contextmanager
        def opened() -> Iterator[tuple[nn.Module, Callable[[], Tensor]]]:
            module = self.build(rows).train()
            make_contentless(module, cuda=cuda)
            trainable = self.trainable(module, self.chunk_size(rows, cuda=cuda))
            batch = self.batch(rows, self.row)

            def loss() -> Tensor:
                with autocast(torch.device("cpu"), torch.bfloat16 if bf16 else torch.float32):
                    return trainable.loss(batch).loss

            recomputed = (
                recomputing_blocks(module)
                if self.training.recompute == "blocks"
                else contextlib.nullcontext()
            )
            with recomputed:
                yield module, loss

        return opened


def choose_execution(
    training: TrainingSettings, device: str | None, *, num_devices: int = 1
) -> tuple[Execution, torch.device | None]:
    """How the run would be executed, by training's own rules, and the device at hand it is measured
    on (None: on paper).
    """
    if device in (None, "cpu"):
        here = torch.device("cpu") if device == "cpu" else choose_device(training.device)
        bf16 = choose_dtype(training.precision, here) == torch.bfloat16
    elif device in DEVICES:
        here, bf16 = None, training.precision != "fp32"
    else:
        names = ", ".join(["cpu", *DEVICES])
        raise UsageError(
            f"no device {device!r} is known; choose one of {names}, or leave --device out to plan "
            "for this machine",
            f"不认识设备 {device!r}；可选：{names}；不写 --device 则为本机做计划",
        )
    decision = decide_parallel_compilation(
        training, here or torch.device("cuda"), alone=num_devices == 1, elsewhere=here is None
    )
    return Execution(bf16, decision.enabled, decision.cuda_graphs, num_devices), here
