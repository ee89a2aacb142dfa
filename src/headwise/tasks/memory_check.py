"""Whether a training fits into memory, asked for every task before its run directory is kept.

A bound that costs nothing lets small trainings through: every linear map and recurrent layer keeps
its input and output, four times over, in fp32. Beyond it, the memory of a step is predicted from
steps of one and two rows (`training_cost.py`). A training that may not fit is warned of; one that
cannot fit is refused, unless `--anyway`. Translation has a finer prediction, before any data is
read (`preflight.py`).
"""

import logging

from torch import nn

from headwise.language import say
from headwise.planning.available_memory import available_memory
from headwise.planning.hardware import GIB
from headwise.planning.smaller_batches import MARGIN_OF_MEMORY
from headwise.tasks.preflight import TooLargeError
from headwise.tasks.training_cost import Trial, measure_cost
from headwise.training.choices import TrainingSettings
from headwise.training.precision import choose_device

logger = logging.getLogger(__name__)


def check_memory(trial: Trial, training: TrainingSettings, *, anyway: bool) -> None:
    """Refuse what cannot fit, warn of what may not; silent where there is room."""
    device = choose_device(training.device)
    available = available_memory(device)
    module = trial.trainable.module
    if available is None or bound_memory(module, training.batch_tokens) < available // 2:
        return
    needed = measure_cost(trial, training=training).memory
    if needed <= (1 - MARGIN_OF_MEMORY) * available:
        return
    en, zh = _describe(needed, available, training)
    if needed <= (1 + MARGIN_OF_MEMORY) * available or anyway:
        logger.warning("%s", say(f"it may not fit: {en}", f"可能放不下：{zh}"))
        return
    raise TooLargeError(
        f"{en}; or start it nevertheless with --anyway", f"{zh}；若仍要开始，请加 --anyway"
    )


def bound_memory(module: nn.Module, num_tokens: int) -> int:
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
    half = (
        f"training.batch_tokens={max(1, training.batch_tokens // 2)} "
        f"training.accumulation={2 * training.accumulation}"
    )
    return (
        f"a step needs about {needed / GIB:.1f} GiB, {available / GIB:.1f} GiB are free; "
        f"{half} trains the same with half of the batch",
        f"一步约需 {needed / GIB:.1f} GiB，可用 {available / GIB:.1f} GiB；"
        f"{half} 以一半的批次训练，效果不变",
    )
