"""Chooses the weights a training ends with: an average, the best validation's, or the last.

The average is used if the recipe asks for one; else the weights of the best validation, if there
was any; else the last. A damaged snapshot is skipped with a warning, because the training itself is
intact.
"""

import logging
from collections.abc import Sequence
from typing import Literal

from torch import nn

from headwise.errors import CheckpointError
from headwise.language import say
from headwise.training.averaging import SnapshotFolder, average_snapshots
from headwise.weights import Weights, put_weights, weights_of

logger = logging.getLogger(__name__)

FinalWeights = Literal["last", "best", "averaged", "ema"]


def put_final_weights(
    module: nn.Module,
    *,
    last: Weights,
    snapshots: SnapshotFolder,
    steps: Sequence[int],
    moving: Weights | None,
    best: SnapshotFolder,
    best_step: int | None,
) -> FinalWeights:
    """Copy the weights worth keeping into the module and return which ones they are."""
    own = weights_of(module)
    if moving is not None:
        put_weights(own, moving)
        return "ema"
    put_weights(own, last)
    try:
        if steps:
            put_weights(own, average_snapshots(snapshots, steps), file=snapshots.path)
            return "averaged"
        if best_step is not None and best_step in best.steps():
            put_weights(own, best.read(best_step), file=best.at(best_step))
            return "best"
    except CheckpointError as error:
        logger.warning(
            "%s",
            say(
                f"{error.file}: {error.en}; the last weights are used",
                f"{error.file}：{error.zh}；改用最后的权重",
            ),
        )
    return "last"
