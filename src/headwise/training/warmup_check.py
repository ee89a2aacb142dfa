"""Warns of parts of a model that a training of this length does not suit.

A part says so itself, in its method `warn_of_training`: power norm, for example, if the training
ends during its warm-up (blocks/power_norm.py). These are warnings and not errors, because a run
that has already begun must be able to continue.

Tested against: counts of batches by hand, for accumulation and several processes.
"""

import logging
from typing import Protocol, runtime_checkable

from torch import nn

from headwise.language import say
from headwise.settings.kind import Words
from headwise.training.choices import TrainingSettings

logger = logging.getLogger(__name__)


@runtime_checkable
class WarnsOfTraining(Protocol):
    """A part of a model that not every training suits."""

    def warn_of_training(self, num_batches: int) -> Words | None:
        """What is wrong with a training of so many batches, and what helps; None: nothing."""
        ...


def warn_of_endless_warmup(
    module: nn.Module, settings: TrainingSettings, *, num_processes: int
) -> None:
    """Each warning once, however many parts of a model give it."""
    num_batches = settings.steps * -(-settings.accumulation // num_processes)
    parts = [part for part in module.modules() if isinstance(part, WarnsOfTraining)]
    for found in dict.fromkeys(part.warn_of_training(num_batches) for part in parts):
        if found is not None:
            logger.warning("%s", say(*found))
