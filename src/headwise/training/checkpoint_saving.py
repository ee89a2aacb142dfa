"""Collects the state of a training and saves it as a checkpoint.

A full disk does not end a training: the checkpoint is skipped with a warning. It is an error only
for the last checkpoint of a run and for one that a signal asked for. This file also explains to the
user what was saved if one of several processes was lost.
"""

import logging

from headwise.training.averaging import SnapshotFolder
from headwise.training.checkpoints import (
    Checkpoint,
    CheckpointState,
    DiskFullError,
    count_bytes,
    optimizer_tensors,
    refusing_full_disk,
)
from headwise.training.choices import TrainingSettings
from headwise.training.process_group import LostProcessError
from headwise.training.run_directory import RunDirectory
from headwise.training.updates import Updater
from headwise.weights import Weights, weights_of

logger = logging.getLogger(__name__)


def collect_checkpoint(updater: Updater, state: CheckpointState) -> Checkpoint:
    """All tensors of a checkpoint as whole tensors.

    Every process must call this; the first one gets the tensors.
    """
    module, gather = updater.learner.module, updater.layout.gather
    return Checkpoint(
        state=state,
        weights=gather(weights_of(module)),
        optimizer=gather(optimizer_tensors(updater.optimizer, module)),
        ema={} if updater.average is None else gather(updater.average.weights),
    )


def save_checkpoint(
    run: RunDirectory | None, checkpoint: Checkpoint, settings: TrainingSettings, *, insist: bool
) -> None:
    """Publish a checkpoint; a full disk is an error if `insist`, else a warning."""
    assert run is not None, "only the process that has the directory saves"
    average = 0 if settings.average is None else settings.average.last
    try:
        run.save(checkpoint, keep=settings.keep.last, average=average)
    except DiskFullError as error:
        if insist:
            raise
        logger.warning("%s", error)


def store_weights(folder: SnapshotFolder, step: int, weights: Weights) -> None:
    """Save weights only (best validation, snapshots); a full disk is a warning."""
    folder.path.mkdir(parents=True, exist_ok=True)
    try:
        with refusing_full_disk(folder.path, needed=count_bytes(weights)):
            folder.write(step, weights)
    except DiskFullError as error:
        logger.warning("%s", error)


def explain_lost_process(step: int, *, saved: int | None, known: bool = True) -> LostProcessError:
    """The error to raise when another process was lost after `step`.

    `saved` is the newest checkpoint; `known` says whether this process can see the checkpoints.
    """
    if saved is None and known:
        return LostProcessError(
            f"another process of this run was lost after step {step}, and nothing had been saved "
            "yet: start it again from the beginning, with a smaller training.checkpoint_every if "
            "it is lost often",
            f"本次运行的另一个进程在第 {step} 步之后丢失，而此前尚未保存任何内容：请从头重新启动；"
            "若常常丢失，请减小 training.checkpoint_every",
        )
    if saved is None:
        return LostProcessError(
            f"another process of this run was lost after step {step}; start it again with --resume",
            f"本次运行的另一个进程在第 {step} 步之后丢失；请加 --resume 重新启动",
        )
    return LostProcessError(
        f"another process of this run was lost after step {step}; step {saved} is saved: start it "
        "again with --resume, with as many processes or another number",
        f"本次运行的另一个进程在第 {step} 步之后丢失；第 {saved} 步已保存：请加 --resume "
        "重新启动，进程数可以不同",
    )
