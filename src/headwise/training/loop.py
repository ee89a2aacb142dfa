"""The training loop: it takes batches and updates the weights, and at certain steps logs, validates
and saves.

    for step = 1, 2, …:
        gradient of the mean loss, dropout seeded by (seed, step)  →  clip  →  AdamW at rate(step)

Everything the next update depends on is in the checkpoint or follows from the step number, so a run
that was killed and resumed ends with the same bits as an undisturbed one. This file decides *when*
things happen; *how* each is done has its own file: `updates` (one step), `session` (log,
validation, saving), `run_directory` (what is on disk), `early_stopping`, `averaging`, and
`process_group` (several processes, each with its share of every global batch).

Tested by learning to copy, by resuming after kills and damage, and by comparing logs and weights
with those of an undisturbed run.
"""

import contextlib
from typing import Any

import torch

from headwise.training.choices import TrainingSettings, learning_rate
from headwise.training.determinism import repeatable
from headwise.training.early_stopping import Better
from headwise.training.precision import choose_device
from headwise.training.prefetching import Batches, Cursor, Prefetcher
from headwise.training.process_group import (
    LostProcessError,
    OneProcess,
    Processes,
    check_devices,
    detecting_lost_processes,
)
from headwise.training.progress import ProgressCallback, Reason, TrainingResult
from headwise.training.run_directory import RunDirectory
from headwise.training.session import Evaluate, Session, Setup
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
    processes: Processes | None = None,
    better: Better | None = None,
) -> TrainingResult:
    """Train until steps, patience, time or data run out; the module ends with the best weights.

    `evaluate(step)` measures the module: in evaluation mode, without gradients, with averaged
    weights if `ema` is set. With a `run` that holds checkpoints, training goes on from the newest
    good one. A signal (signals.py) ends training with TrainingStopped after saving. Of several
    processes only the first has a `run`, and `evaluate` is called only there; either all processes
    are given an `evaluate` or none. `better` says which way the metric `keep.best` is better; None:
    its name does (early_stopping.py).
    """
    processes = processes or OneProcess()
    device = choose_device(settings.device)
    check_devices(device)
    with contextlib.ExitStack() as stack:
        # Dropout draws from torch's global generators; their state is given back to the caller.
        stack.enter_context(
            torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])
        )
        stack.enter_context(repeatable(enabled=settings.deterministic))
        stop = stack.enter_context(StopRequest())
        setup = Setup(
            trainable,
            settings,
            device,
            stop,
            processes,
            fingerprint=batches.fingerprint,
            run=run,
            evaluate=evaluate,
            progress=progress,
            better=better,
        )
        session = Session(setup, stack)
        source = stack.enter_context(Prefetcher(batches, session.cursor, device=device))
        try:
            with detecting_lost_processes():
                return session.finish(run_steps(session, source, settings))
        except LostProcessError as error:
            raise session.rescue() from error


def run_steps(session: Session, source: Prefetcher, settings: TrainingSettings) -> Reason:
    """Update until there is a reason to stop, and return that reason."""
    if session.is_validation_due():
        session.validate()  # a signal interrupted it before the checkpoint was written
    # Several processes share the rows of an update; each takes them in as few batches as possible.
    num_batches = -(-settings.accumulation // session.processes.count)
    while (reason := session.reason_to_stop()) is None:
        taken = take_global_batch(source, num_batches)
        if taken is None:
            return "data"
        step = session.step + 1
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


def take_global_batch(source: Prefetcher, num_batches: int) -> tuple[list[Any], Cursor] | None:
    """The batches of one update and the cursor after them; None when the data has ended."""
    batches = []
    cursor: Cursor = {}
    for _ in range(num_batches):
        item = source.take()
        if item is None:
            return None
        batches.append(item[0])
        cursor = item[1]
    return batches, cursor
