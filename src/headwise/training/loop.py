"""The training loop, from top to bottom: take batches, update, and at their times log, snapshot, validate and save.

    for step = 1, 2, …:   seed dropout with (seed, step)  →  gradient of the mean loss  →  clip  →  AdamW at rate(step)

Everything the next update depends on is in the checkpoint or follows from the step number, so a run that was killed and
resumed ends with the same bits as one that was not. *When* things happen is decided here; *how* each is done has its own
file: updates (one step), session (log, validation, saving), run_directory (what is on disk), selection, averaging.

Tested by learning to copy, by resuming after kills and damage, and by comparing logs and weights with an undisturbed run.
"""

import contextlib
from typing import Any

import torch

from headwise.errors import UsageError
from headwise.randomness import seed_from
from headwise.training.choices import TrainingSettings, learning_rate
from headwise.training.determinism import repeatable
from headwise.training.precision import choose_device
from headwise.training.prefetching import Batches, Cursor, Prefetcher
from headwise.training.progress import ProgressCallback, Reason, TrainingResult
from headwise.training.run_directory import RunDirectory
from headwise.training.session import Evaluate, Session
from headwise.training.signals import StopRequest
from headwise.training.updates import Trainable


def train(
    trainable: Trainable,
    batches: Batches,
    settings: TrainingSettings,
    run: RunDirectory | None = None,
    *,
    evaluate: Evaluate | None = None,
    progress: ProgressCallback | None = None,
    process: int = 0,
    num_processes: int = 1,
) -> TrainingResult:
    """Train until steps, patience, time or data run out; the module ends with the weights worth keeping.

    `evaluate(step)` measures the module: in evaluation mode, without gradients, with averaged weights if `ema` is set.
    With a `run` that holds checkpoints, training goes on from the newest good one. A signal (SIGTERM, SIGINT) ends it with
    TrainingStopped after saving.
    """
    if num_processes != 1:
        raise UsageError(
            f"{num_processes} processes were asked for; this version trains in one: start it without torchrun",
            f"要求 {num_processes} 个进程；本版本只用一个进程训练：请不要用 torchrun 启动",
        )
    device = choose_device(settings.device)
    with contextlib.ExitStack() as stack:
        # Dropout draws from torch's global generators; the caller's are given back as they were.
        stack.enter_context(torch.random.fork_rng(devices=[device] if device.type == "cuda" else []))
        stack.enter_context(repeatable(enabled=settings.deterministic))
        stop = stack.enter_context(StopRequest())
        session = stack.enter_context(
            Session(trainable, settings, run=run, evaluate=evaluate, progress=progress, device=device, stop=stop)
        )
        session.restore(fingerprint=batches.fingerprint, num_processes=num_processes)
        source = stack.enter_context(Prefetcher(batches, session.cursor, device=device))
        return session.finish(run_steps(session, source, settings, process=process))


def run_steps(session: Session, source: Prefetcher, settings: TrainingSettings, *, process: int) -> Reason:
    """Updates until there is a reason to stop, which is returned."""
    if session.is_validation_due():
        session.validate()  # a signal cut it short before the checkpoint we came from
    while (reason := session.reason_to_stop()) is None:
        taken = take_global_batch(source, settings.accumulation)
        if taken is None:
            return "data"
        step = session.step + 1
        torch.manual_seed(seed_from(settings.seed, "step", step, process))
        rate = learning_rate(settings.schedule, step, steps=settings.steps)
        session.updater.update(taken[0], step=step, learning_rate=rate)
        session.count_step(cursor=taken[1], learning_rate=rate)

        if step % settings.log_every == 0:
            session.log()
        if settings.average is not None and step % settings.average.every == 0:
            session.snapshot()
        if session.is_validation_due():
            session.validate()
        if step % settings.checkpoint_every == 0:
            session.save()
        session.stop_if_asked()
        session.report("training")
    return reason


def take_global_batch(source: Prefetcher, accumulation: int) -> tuple[list[Any], Cursor] | None:
    """The batches of one update and the cursor after the last of them; None when the data has ended."""
    batches = []
    cursor: Cursor = {}
    for _ in range(accumulation):
        item = source.take()
        if item is None:
            return None
        batches.append(item[0])
        cursor = item[1]
    return batches, cursor
