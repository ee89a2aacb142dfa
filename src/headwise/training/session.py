"""`Session`: the state of one training, and its log, validations, checkpoints and end.

A session begins at the newest good checkpoint, or at step 0. At its end the model has the final
weights (`final_weights.py`): the mean of the last snapshots or the moving average if the recipe
asks for one, else the weights of the best validation, else the last ones.

With several processes each has a session, and all take the same steps in the same order. Only the
first one has the run directory: it reads, measures and writes, and sends the result to the others.
Code here does not ask which process it is in; `processes` (`process_group.py`) does.
"""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headwise.errors import TrainingStopped
from headwise.training.averaging import SnapshotFolder
from headwise.training.checkpoint_restoring import restore_training
from headwise.training.checkpoint_saving import (
    collect_checkpoint,
    explain_lost_process,
    save_checkpoint,
    store_weights,
)
from headwise.training.checkpoints import CheckpointState
from headwise.training.choices import TrainingSettings
from headwise.training.early_stopping import Better, Selection
from headwise.training.final_weights import FinalWeights, put_final_weights
from headwise.training.gradient_checkpointing import recomputing_blocks
from headwise.training.log_window import LogWindow
from headwise.training.prefetching import Cursor
from headwise.training.process_group import LostProcessError, Processes
from headwise.training.progress import (
    Clock,
    Phase,
    ProgressCallback,
    Reason,
    Reporter,
    TrainingResult,
)
from headwise.training.run_directory import RunDirectory
from headwise.training.signals import Interrupted, StopRequest, name_signal
from headwise.training.tensorboard import Board
from headwise.training.updates import Trainable
from headwise.training.warmup_check import warn_of_endless_warmup
from headwise.weights import Weights, weights_of

Evaluate = Callable[[int], Mapping[str, float]]

# Entries of a log line that differ from run to run; all others are reproduced by a resumed run.
TIMINGS = ("seconds", "tokens_per_second")


@dataclass(frozen=True)
class Setup:
    """What one training is made of; `fingerprint` names the data it reads."""

    trainable: Trainable
    settings: TrainingSettings
    device: torch.device
    stop: StopRequest
    processes: Processes
    fingerprint: str
    run: RunDirectory | None = None
    evaluate: Evaluate | None = None
    progress: ProgressCallback | None = None
    better: Better | None = None


class Session:
    """The state of a training in progress; `step` counts finished updates.

    A new session begins at the newest good checkpoint of the run, or at step 0. What it opens is
    closed by `stack`.
    """

    def __init__(self, setup: Setup, stack: contextlib.ExitStack) -> None:
        self.settings, self.run, self.device = setup.settings, setup.run, setup.device
        self.stop, self.processes = setup.stop, setup.processes
        self._trainable, self._evaluate = setup.trainable, setup.evaluate
        self._better = setup.better
        self.saves = self.processes.ask_first(lambda: self.run is not None)
        self.best, self.snapshots = _weight_folders(self.run, stack)
        if self.processes.is_first:
            warn_of_endless_warmup(
                self._trainable.module, self.settings, num_processes=self.processes.count
            )
        restored = restore_training(
            self._trainable,
            self.settings,
            self.run,
            processes=self.processes,
            device=self.device,
            fingerprint=setup.fingerprint,
        )
        self.updater, self.environment = restored.updater, restored.environment
        if self.settings.recompute == "blocks":
            stack.enter_context(recomputing_blocks(self.updater.learner.module))
        state = restored.state
        self.step = 0 if state is None else state.step
        self.cursor: Cursor | None = None if state is None else state.cursor
        self.learning_rate = 0.0 if state is None else state.learning_rate
        self.logged = 0 if state is None else state.logged
        self.selection = (
            Selection(metric=self.settings.keep.best) if state is None else state.selection
        )
        self._counted_before = self.updater.sums.read().target_tokens
        self.clock = Clock(seconds_before=0.0 if state is None else state.seconds)
        self.clock.warn_if_over(self.settings.time_limit)
        self.board = None
        if self.settings.tensorboard and self.run is not None:
            self.board = Board(self.run.path / "tensorboard", step=self.step)
            stack.callback(self.board.close)
        self._reporter = Reporter(setup.progress, self.settings)
        self.report("compiling" if self.updater.compilation.enabled else "training")

    def reason_to_stop(self) -> Reason | None:
        if self.step >= self.settings.steps:
            return "steps"
        if (
            self.settings.patience is not None
            and self.selection.num_without_improvement >= self.settings.patience
        ):
            return "patience"
        limit = self.settings.time_limit
        if limit is not None and self.processes.greatest(self.clock.elapsed() >= limit):
            return "time_limit"
        return None

    def count_step(self, *, cursor: Cursor, learning_rate: float) -> None:
        self.step, self.cursor, self.learning_rate = self.step + 1, cursor, learning_rate
        if self.run is not None:
            self.run.is_updated = True
        self.clock.count_step()
        if self.device.type == "cpu":  # reading from a GPU would wait for its work in flight
            self._read()

    def _read(self) -> LogWindow:
        window = self.updater.sums.read()
        self._reporter.loss = window.mean_loss or self._reporter.loss
        # Tokens that an earlier session counted took none of this session's time.
        self._reporter.tokens_per_second = (
            window.target_tokens - self._counted_before
        ) / self.clock.window()
        window.check(step=self.step, max_skipped=self.settings.max_skipped)
        return window

    def log(self) -> None:
        """Write one line about the updates since the last line."""
        line = {
            "kind": "train",
            "step": self.step,
            "epoch": self._epoch(),
            "learning_rate": self.learning_rate,
        }
        line.update(self._read().entries())
        line["tokens_per_second"] = round(self._reporter.tokens_per_second, 1)
        self._write(line)
        self.logged = self.step
        self.updater.sums.start_window()
        self.clock.start_window()
        self._counted_before = 0

    def _epoch(self) -> int | None:
        return (self.cursor or {}).get("epoch")

    def _write(self, line: Mapping[str, Any]) -> None:
        line = {**line, "seconds": round(self.clock.elapsed(), 3)}
        if self.run is not None:
            self.run.log.write(line)
        if self.board is not None:
            self.board.write(line)

    def is_validation_due(self) -> bool:
        every = self.settings.validate_every
        due = every is not None and self.step > 0 and self.step % every == 0
        return due and self._evaluate is not None and self.selection.step != self.step

    def validate(self) -> None:
        """Measure, store the weights if they are the best so far, count patience.

        A signal interrupts it; the resumed run validates again.
        """
        average = self.updater.average
        weights = weights_of(self.updater.learner.module) if average is None else average.weights
        with self._paused("validating"):
            with self.updater.layout.showing(average):
                metrics = self.processes.ask_first(self._measure)
            if metrics is None:
                self.stop_if_asked()
            self._reporter.metrics = metrics
            selection = self.selection.after(self.step, metrics, better=self._better)
            if selection.best != self.selection.best:
                self._store(self.best, weights)
            self.selection = selection
            self._write({"kind": "valid", "step": self.step, "epoch": self._epoch(), **metrics})

    def _measure(self) -> dict[str, float] | None:
        """The metrics of the whole model; None if a signal came first."""
        assert self._evaluate is not None
        self._trainable.module.eval()
        try:
            with self.stop.interruptible(), torch.no_grad():
                return {name: float(value) for name, value in self._evaluate(self.step).items()}
        except Interrupted:
            return None
        finally:
            self._trainable.module.train()

    def snapshot(self) -> None:
        """Store the weights for the mean of the last snapshots."""
        self._store(self.snapshots, weights_of(self.updater.learner.module))

    def _store(self, folder: SnapshotFolder, weights: Weights) -> None:
        whole = self.updater.layout.gather(weights)
        self.processes.ask_first(lambda: store_weights(folder, self.step, whole))

    def save(self, *, final: bool = False) -> None:
        """Publish a checkpoint. If the disk is full, only a final one is an error."""
        if not self.saves:
            return
        with self._paused("saving"):
            self._read()
            checkpoint = collect_checkpoint(self.updater, self._state())
            self.processes.ask_first(
                lambda: save_checkpoint(self.run, checkpoint, self.settings, insist=final)
            )

    def _state(self) -> CheckpointState:
        return CheckpointState(
            step=self.step,
            cursor=None if self.cursor is None else dict(self.cursor),
            learning_rate=self.learning_rate,
            seconds=self.clock.elapsed(),
            window=self.updater.sums.to_list(),
            logged=self.logged,
            selection=self.selection,
            compiled=self.updater.compilation.enabled,
            cuda_graphs=self.updater.compilation.cuda_graphs,
            environment=self.environment,
        )

    def stop_if_asked(self) -> None:
        """If any process received a signal: save and raise TrainingStopped."""
        number = self.processes.greatest(self.stop.signal_number or 0)
        if number == 0:
            return
        self.save(final=True)
        raise TrainingStopped(
            f"stopped ({name_signal(number)}) after step {self.step}",
            f"在第 {self.step} 步后停止（{name_signal(number)}）",
            signal_number=number,
            saved=self.saves,
        )

    def finish(self, reason: Reason) -> TrainingResult:
        """Log, validate and save once more, then put the weights worth keeping into the module."""
        window = self.updater.sums.read()
        if window.updates or window.skipped:
            self.log()
        if self._evaluate is not None and self.selection.step != self.step:
            self.validate()
        self.save(final=True)
        self.stop_if_asked()
        weights = self._put_final_weights()
        self.report("finished")
        return TrainingResult(
            step=self.step,
            reason=reason,
            weights=weights,
            best=self.selection.best,
            metrics=self._reporter.metrics,
            target_tokens=int(window.total_tokens),
            seconds=self.clock.elapsed(),
            skipped=int(window.total_skipped),
            precision=self.environment.precision,
            compiled=self.updater.compilation.enabled,
        )

    def _put_final_weights(self) -> FinalWeights:
        layout, average, module = self.updater.layout, self.settings.average, self._trainable.module
        last = layout.gather(weights_of(self.updater.learner.module))
        moving = (
            None if self.updater.average is None else layout.gather(self.updater.average.weights)
        )
        chosen = self.processes.ask_first(
            lambda: put_final_weights(
                module,
                last=last,
                snapshots=self.snapshots,
                steps=[] if average is None else self.snapshots.steps()[-average.last :],
                moving=moving,
                best=self.best,
                best_step=None if self.selection.best is None else self.selection.best.step,
            )
        )
        for tensor in weights_of(module).values():
            self.processes.spread(tensor)
        return chosen

    def rescue(self) -> LostProcessError:
        """After another process was lost: save the last finished update if this process holds all
        of it, and return the error to raise.
        """
        if self.run is None:
            return explain_lost_process(self.step, saved=None, known=False)
        # A GPU may wait for the lost process for ever.
        if self.updater.layout.is_whole and self.device.type == "cpu":
            save_checkpoint(
                self.run,
                collect_checkpoint(self.updater, self._state()),
                self.settings,
                insist=False,
            )
        return explain_lost_process(self.step, saved=max(self.run.steps(), default=None))

    @contextlib.contextmanager
    def _paused(self, phase: Phase) -> Iterator[None]:
        self.report(phase)
        start = time.monotonic()
        try:
            yield
        finally:
            self.clock.pause(time.monotonic() - start)

    def report(self, phase: Phase) -> None:
        self._reporter.report(phase, self.step, clock=self.clock, learning_rate=self.learning_rate)


def _weight_folders(
    run: RunDirectory | None, stack: contextlib.ExitStack
) -> tuple[SnapshotFolder, SnapshotFolder]:
    """Folders for the best weights and for snapshots: those of the run, or temporary ones."""
    if run is not None:
        return run.best, run.snapshots
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headwise-")))
    return SnapshotFolder(folder / "best"), SnapshotFolder(folder / "snapshots")
