"""Checks that a training fits into memory, before its run directory is kept. All tasks use it.

First an upper bound that is computed at once: every linear map and recurrent layer keeps its input
and output, four times over, in fp32. A training below the bound is accepted. Otherwise the memory
of a step is predicted from steps of one and two rows (`training_cost.py`). If the training may not
fit, the user is warned; if it cannot fit, it is refused, unless `--anyway` is given. Translation
has a better prediction that needs no data (`translation/preflight.py`).
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn

from headwise.errors import UsageError, is_out_of_memory
from headwise.language import say
from headwise.planning.available_memory import available_memory
from headwise.planning.hardware import GIB
from headwise.planning.smaller_batches import MARGIN_OF_MEMORY
from headwise.planning.units import mebibytes
from headwise.tasks.training_cost import TrainingCost, Trial, measure_cost
from headwise.training.choices import TrainingSettings
from headwise.training.precision import choose_device

logger = logging.getLogger(__name__)


class TooLargeError(UsageError):
    """A training does not fit into memory; the message says which setting to halve."""


def check_memory(trial: Trial, training: TrainingSettings, *, anyway: bool) -> None:
    """Refuse what cannot fit, warn of what may not; silent where there is room."""
    device = choose_device(training.device)
    available = available_memory(device)
    module = trial.trainable.module
    if available is None or bound_step(module, training.batch_tokens) < available // 2:
        return
    needed = measure_cost(trial, training=training).memory
    if needed <= (1 - MARGIN_OF_MEMORY) * available:
        return
    may_fit = needed <= (1 + MARGIN_OF_MEMORY) * available or anyway
    _refuse_or_warn(_describe(needed, available, training), may_fit=may_fit)


def check_counting_memory(bound: int, measure: Callable[[], TrainingCost], *, anyway: bool) -> None:
    """The same for a model that is counted: `bound` bytes are certainly enough, `measure` predicts
    what is needed.
    """
    available = available_memory(torch.device("cpu"))
    if available is None or bound < available // 2:
        return
    needed = measure().memory
    if needed <= (1 - MARGIN_OF_MEMORY) * available:
        return
    en = (
        f"counting needs about {_amount(needed)}, {_amount(available)} are free; give less text, "
        "or lower model.order (n-grams) or model.dim (word vectors)"
    )
    zh = (
        f"计数约需 {_amount(needed)}，可用 {_amount(available)}；请减少文本，或减小 "
        "model.order（n 元语法）、model.dim（词向量）"
    )
    _refuse_or_warn((en, zh), may_fit=needed <= (1 + MARGIN_OF_MEMORY) * available or anyway)


def _amount(nbytes: float) -> str:
    return f"{nbytes / GIB:.1f} GiB" if nbytes >= GIB else mebibytes(nbytes)


def _refuse_or_warn(said: tuple[str, str], *, may_fit: bool) -> None:
    en, zh = said
    if may_fit:
        logger.warning("%s", say(f"it may not fit: {en}", f"可能放不下：{zh}"))
        return
    raise TooLargeError(
        f"{en}; or start it nevertheless with --anyway", f"{zh}；若仍要开始，请加 --anyway"
    )


def bound_step(module: nn.Module, num_tokens: int) -> int:
    """Certainly more than a step of so many tokens takes."""
    maps = [part for part in module.modules() if isinstance(part, nn.Linear | nn.RNNBase)]
    matrices = [
        weight
        for part in maps
        for name, weight in part.named_parameters(recurse=False)
        if "weight" in name
    ]
    widths = sum(sum(weight.shape) for weight in matrices)
    return 24 * num_tokens * widths + 16 * sum(weight.numel() for weight in module.parameters())


def _describe(needed: float, available: float, training: TrainingSettings) -> tuple[str, str]:
    half = _halved(training)
    return (
        f"a step needs about {needed / GIB:.1f} GiB, {available / GIB:.1f} GiB are free; "
        f"{half} trains the same with half of the batch",
        f"一步约需 {needed / GIB:.1f} GiB，可用 {available / GIB:.1f} GiB；"
        f"{half} 以一半的批次训练，效果不变",
    )


def _halved(training: TrainingSettings) -> str:
    """Settings that make the same updates with half of the activations."""
    return (
        f"training.batch_tokens={max(1, training.batch_tokens // 2)} "
        f"training.accumulation={2 * training.accumulation}"
    )


@contextlib.contextmanager
def explaining_memory(training: TrainingSettings, run: Path | None) -> Iterator[None]:
    """Turn "out of memory", however it is raised, into what to halve and where to go on."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if not is_out_of_memory(error):
            raise
        half = _halved(training)
        saved = _latest(run)
        raise TooLargeError(
            f"memory ran out with training.batch_tokens={training.batch_tokens:,}; start a new "
            f"run with half the batch, which learns the same: {half} (or "
            "training.recompute=blocks); "
            + (
                f"{saved} is whole: with more memory free, --resume goes on from it"
                if saved
                else "nothing had been saved yet"
            ),
            f"内存用尽（training.batch_tokens={training.batch_tokens:,}）；"
            f"请以一半的批次重新开始，训练效果不变：{half}（或 training.recompute=blocks）；"
            + (
                f"{saved} 完好：腾出内存后可用 --resume 从它继续" if saved else "尚未保存任何检查点"
            ),
        ) from error


def _latest(run: Path | None) -> Path | None:
    """The checkpoint a resumed run would start from."""
    with contextlib.suppress(OSError):
        if run is not None:
            return run / "checkpoints" / (run / "LATEST").read_text(encoding="utf-8").strip()
    return None
