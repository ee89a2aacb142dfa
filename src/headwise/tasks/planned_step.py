"""What is planned: a recipe with the sizes of its data, and the training step it stands for, built
without content.

What a recipe cannot know before its data is prepared is assumed: the largest vocabulary, source
rows as long as target rows.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.multi_head import MultiHeadAttention
from headwise.blocks.recurrent_cells import RecurrentLayer, RecurrentStack
from headwise.data.packing import PackedBatch
from headwise.errors import UsageError
from headwise.models.choices import build_model
from headwise.models.recurrent.translator import RecurrentTranslator
from headwise.models.translation_model import TranslationModel
from headwise.planning.cost_prediction import Execution
from headwise.planning.hardware import DEVICES
from headwise.planning.step_tracing import Step
from headwise.tasks.translation.objective import RowShape, TranslationLoss
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.training.distributed_model import decide_parallel_compilation
from headwise.training.gradient_checkpointing import recomputing_blocks
from headwise.training.losses import choose_chunk_size
from headwise.training.precision import autocast, choose_device, choose_dtype


class _FusedOnGpu(FusedAttention):
    """One kernel, with dropout too, and no weights stored: steps are watched on a CPU, where both
    would differ.
    """

    def stores_weights(self, q: Tensor, k: Tensor) -> bool:
        return False


def _write_out(module: nn.Module) -> None:
    """Recurrent layers by their equations: torch's fused loops read what tensors without content do
    not have.
    """
    for part in module.modules():
        if isinstance(part, RecurrentLayer | RecurrentStack):
            part.forward = partial(part.forward, written_out=True)  # type: ignore[method-assign]


@dataclass(frozen=True)
class Subject:
    """What is planned: a recipe with the sizes its data gave or will give."""

    recipe: TranslationRecipe
    source_size: int
    target_size: int
    source_row: int
    target_row: int

    @staticmethod
    def of(recipe: TranslationRecipe) -> "Subject":
        row = recipe.data.row_tokens
        return Subject(recipe, recipe.text.size, recipe.text.size, row, row)

    def shape(self, batch_tokens: int) -> RowShape:
        return RowShape(
            max(1, round(batch_tokens / self.target_row)), self.source_row, self.target_row
        )

    def chunk_size(self, rows: int, *, cuda: bool) -> int:
        """Tokens of one chunk of the loss."""
        return choose_chunk_size(
            rows * self.target_row, self.target_size, device="cuda" if cuda else "cpu"
        )

    def module(self) -> TranslationModel:
        return build_model(
            self.recipe.model,
            source_size=self.source_size,
            target_size=self.target_size,
            generator=None,
        )

    def step(self, rows: int, *, bf16: bool, cuda: bool = False) -> Step:
        """The loss of a batch of so many rows, as `Updater` would compute it; `cuda`: with
        attention as a GPU has it.
        """
        training = self.recipe.training

        @contextlib.contextmanager
        def opened() -> Iterator[tuple[nn.Module, Callable[[], Tensor]]]:
            module = self.module().train()
            for layer in module.modules():
                if (
                    cuda
                    and isinstance(layer, MultiHeadAttention)
                    and isinstance(layer.kernel, FusedAttention)
                ):
                    layer.kernel = _FusedOnGpu()
            if isinstance(module, RecurrentTranslator):
                module.assumes_full_rows = (
                    True  # tokens without content cannot be asked for their number
                )
                _write_out(module)
            chunk_size = self.chunk_size(rows, cuda=cuda)
            task = TranslationLoss(module, training.objective.label_smoothing, chunk_size)
            source, target = (
                torch.ones(rows, length, dtype=torch.int64)
                for length in (self.source_row, self.target_row)
            )
            batch = PackedBatch(source, source, source, target, target, target, target)

            def loss() -> Tensor:
                with autocast(torch.device("cpu"), torch.bfloat16 if bf16 else torch.float32):
                    return task.loss(batch).loss

            again = (
                recomputing_blocks(task.module)
                if training.recompute == "blocks"
                else contextlib.nullcontext()
            )
            with again:
                yield task.module, loss

        return opened


def choose_execution(
    recipe: TranslationRecipe, device: str | None, *, num_devices: int = 1
) -> tuple[Execution, torch.device | None]:
    """How the run would be executed, by training's own rules, and the device at hand it is measured
    on (None: on paper).
    """
    training = recipe.training_as_run
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
