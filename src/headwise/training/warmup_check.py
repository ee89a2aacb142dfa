"""Warns if the warm-up of power norm is as long as the training.

During its first `warmup` batches power norm divides by the statistics of the batch; afterwards, and
at inference, by running statistics (blocks/power_norm.py). A training that ends during the warm-up
has never used the running statistics. This is a warning and not an error, because a run that has
already begun must be able to continue.

Tested against: counts of batches by hand, for accumulation and several processes.
"""

import logging

from torch import nn

from headwise.blocks.power_norm import PowerNorm
from headwise.language import say
from headwise.training.choices import TrainingSettings

logger = logging.getLogger(__name__)


def warn_of_endless_warmup(
    module: nn.Module, settings: TrainingSettings, *, num_processes: int
) -> None:
    """One warning for all norms of a model, which share the setting."""
    warmup = max(
        (part.warmup for part in module.modules() if isinstance(part, PowerNorm)), default=None
    )
    num_batches = settings.steps * -(-settings.accumulation // num_processes)
    if warmup is None or warmup < num_batches:
        return
    enough = num_batches // 4
    logger.warning(
        "%s",
        say(
            f"norm.kind=power warms up for {warmup:,} batches, but this training has "
            f"{num_batches:,}: the running statistics used at inference would never be used in "
            f"training; set model.norm.warmup={enough} (a quarter), or train longer",
            f"norm.kind=power 预热 {warmup:,} 批，而本次训练只有 {num_batches:,} 批："
            f"推理时使用的滑动统计量在训练中从未用到；请设 model.norm.warmup={enough}（四分之一），"
            "或延长训练",
        ),
    )
