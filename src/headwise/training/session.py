"""What happens around the updates of one training: restoring, the log, validation, saving, and the final choice of weights.

A session is one process's share of a run: it begins with the newest good checkpoint (or nothing) and ends with the weights
worth keeping in the module: the mean of the last snapshots or the moving average if the recipe asks for one, else those of
the best validation, else the last.
"""

import contextlib
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from headwise.errors import TrainingStopped
from headwise.training.averaging import SnapshotFolder
from headwise.training.checkpoints import (
    Checkpoint,
    CheckpointState,
    DiskFullError,
    count_bytes,
    optimizer_tensors,
    refusing_full_disk,
    restore_optimizer,
    restore_weights,
)
from headwise.training.choices import TrainingSettings
from headwise.training.compilation import Compilation, decide_compilation
from headwise.training.environment import Environment, compare_environments
from headwise.training.final_weights import put_final_weights
from headwise.training.prefetching import Cursor
from headwise.training.progress import Clock, Phase, ProgressCallback, Reason, Reporter, TrainingResult
from headwise.training.run_directory import RunDirectory
from headwise.training.selection import Selection
from headwise.training.signals import Interrupted, StopRequest
from headwise.training.tensorboard import Board
from headwise.training.updates import Trainable, Updater
from headwise.training.window import Window
from headwise.weights import Weights, put_weights, weights_of

logger = logging.getLogger(__name__)

Evaluate = Callable[[int], Mapping[str, float]]

# Entries of a log line that differ from run to run; all others are reproduced by a resumed run.
TIMINGS = ("seconds", "tokens_per_second")


class Session:
    """Mutable state of a training in progress; `step` counts finished updates."""

    def __init__(
        self,
        trainable: Trainable,
        settings: TrainingSettings,
        *,
        run: RunDirectory | None,
        evaluate: Evaluate | None,
        progress: ProgressCallback | None,
        device: torch.device,
        stop: StopRequest,
    ) -> None:
        self.settings, self.run, self.device, self.stop = settings, run, device, stop
        self._trainable, self._evaluate = trainable, evaluate
        self.step = 0
        self.cursor: Cursor | None = None
        self.learning_rate = 0.0
        self.selection = Selection(metric=settings.keep.best)
        self.logged = 0
        self._reporter = Reporter(progress, settings)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        if self.run is not None:
            self.best, self.snapshots = self.run.best, self.run.snapshots
        else:
            folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="headwise-")))
            self.best, self.snapshots = SnapshotFolder(folder / "best"), SnapshotFolder(folder / "snapshots")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def restore(self, *, fingerprint: str, num_processes: int) -> None:
        """Build what updates need; if the run has a checkpoint, put everything back as it was there."""
        checkpoint = self.run.load() if self.run is not None else None
        self.module = self._trainable.module.to(self.device).train()
        self.environment = Environment.here(
            fingerprint=fingerprint, seed=self.settings.seed, num_processes=num_processes, device=self.device
        )
        recorded = None
        if checkpoint is not None:
            compare_environments(checkpoint.state.environment, self.environment)
            recorded = Compilation(checkpoint.state.compiled, checkpoint.state.cuda_graphs)
            restore_weights(self.module, checkpoint.weights, file=self._file("model", checkpoint.state.step))
        self.compilation = decide_compilation(self.settings, self.device, recorded=recorded)
        self.updater = Updater(self._trainable, self.settings, device=self.device, compilation=self.compilation)
        if checkpoint is not None:
            self._restore_state(checkpoint)
        self.clock = Clock(seconds_before=0.0 if checkpoint is None else checkpoint.state.seconds)
        self.board = None
        if self.settings.tensorboard and self.run is not None:
            self.board = Board(self.run.path / "tensorboard", step=self.step)
            self._stack.callback(self.board.close)
        self.report("compiling" if self.compilation.enabled else "training")

    def _restore_state(self, checkpoint: Checkpoint) -> None:
        state = checkpoint.state
        self.step, self.cursor, self.logged = state.step, state.cursor, state.logged
        self.learning_rate, self.selection = state.learning_rate, state.selection
        self.updater.sums.copy_(torch.tensor(state.window, dtype=torch.float64))
        file = self._file("optimizer", state.step)
        restore_optimizer(self.updater.optimizer, self.module, checkpoint.optimizer, file=file)
        if self.updater.average is not None:
            put_weights(self.updater.average.weights, checkpoint.ema, file=self._file("ema", state.step))

    def _file(self, name: str, step: int) -> Path | None:
        return None if self.run is None else self.run.checkpoint(step) / f"{name}.safetensors"

    def reason_to_stop(self) -> Reason | None:
        if self.step >= self.settings.steps:
            return "steps"
        if self.settings.patience is not None and self.selection.num_without_improvement >= self.settings.patience:
            return "patience"
        if self.settings.time_limit is not None and self.clock.elapsed() >= self.settings.time_limit:
            return "time_limit"
        return None

    def count_step(self, *, cursor: Cursor, learning_rate: float) -> None:
        self.step, self.cursor, self.learning_rate = self.step + 1, cursor, learning_rate
        self.clock.count_step()
        if self.device.type == "cpu":  # reading costs nothing there; a GPU would have to be waited for
            self._read()

    def _read(self) -> Window:
        window = self.updater.read()
        self._reporter.loss = window.mean_loss or self._reporter.loss
        self._reporter.tokens_per_second = window.target_tokens / self.clock.window()
        window.check(step=self.step, max_skipped=self.settings.max_skipped)
        return window

    def log(self) -> None:
        """One line about the updates since the last line."""
        line = {"kind": "train", "step": self.step, "epoch": self._epoch(), "learning_rate": self.learning_rate}
        line.update(self._read().entries())
        line["tokens_per_second"] = round(self._reporter.tokens_per_second, 1)
        self._write(line)
        self.logged = self.step
        self.updater.start_window()
        self.clock.start_window()

    def _epoch(self) -> int | None:
        return (self.cursor or {}).get("epoch")

    def _write(self, line: Mapping[str, Any]) -> None:
        line = {**line, "seconds": round(self.clock.elapsed(), 3)}
        if self.run is not None:
            self.run.journal.write(line)
        if self.board is not None:
            self.board.write(line)

    def is_validation_due(self) -> bool:
        every = self.settings.validate_every
        due = every is not None and self.step > 0 and self.step % every == 0
        return due and self._evaluate is not None and self.selection.step != self.step

    def validate(self) -> None:
        """Measure, remember the best weights, count patience; a signal cuts it short and resuming repeats it."""
        assert self._evaluate is not None
        with self._paused("validating"):
            try:
                with self.stop.interruptible(), self._evaluating():
                    metrics = {name: float(value) for name, value in self._evaluate(self.step).items()}
            except Interrupted:
                self.stop_if_asked()
            self._reporter.metrics = metrics
            selection = self.selection.after(self.step, metrics)
            if selection.best != self.selection.best:
                average = self.updater.average
                self._store(self.best, weights_of(self.module) if average is None else average.weights)
            self.selection = selection
            self._write({"kind": "valid", "step": self.step, "epoch": self._epoch(), **metrics})

    @contextlib.contextmanager
    def _evaluating(self) -> Iterator[None]:
        average = self.updater.average
        self.module.eval()
        try:
            with torch.no_grad(), average.applied() if average is not None else contextlib.nullcontext():
                yield
        finally:
            self.module.train()

    def snapshot(self) -> None:
        """Weights for the mean of the last n."""
        self._store(self.snapshots, weights_of(self.module))

    def _store(self, folder: SnapshotFolder, weights: Weights) -> None:
        folder.path.mkdir(parents=True, exist_ok=True)
        try:
            with refusing_full_disk(folder.path, needed=count_bytes(weights)):
                folder.write(self.step, weights)
        except DiskFullError as error:
            logger.warning("%s", error)

    def save(self, *, final: bool = False) -> None:
        """Publish a checkpoint; without room for it, training goes on and only a final one is insisted on."""
        if self.run is None:
            return
        with self._paused("saving"):
            self._read()
            average = self.settings.average
            try:
                keep = self.settings.keep.last
                self.run.save(self._checkpoint(), keep=keep, average=0 if average is None else average.last)
            except DiskFullError as error:
                if final:
                    raise
                logger.warning("%s", error)

    def _checkpoint(self) -> Checkpoint:
        average = self.updater.average
        return Checkpoint(
            state=CheckpointState(
                step=self.step,
                cursor=None if self.cursor is None else dict(self.cursor),
                learning_rate=self.learning_rate,
                seconds=self.clock.elapsed(),
                window=self.updater.sums.tolist(),
                logged=self.logged,
                selection=self.selection,
                compiled=self.compilation.enabled,
                cuda_graphs=self.compilation.cuda_graphs,
                environment=self.environment,
            ),
            weights=weights_of(self.module),
            optimizer=optimizer_tensors(self.updater.optimizer, self.module),
            ema={} if average is None else average.weights,
        )

    def stop_if_asked(self) -> None:
        """After a signal: save and leave."""
        number = self.stop.signal_number
        if number is None:
            return
        self.save(final=True)
        saved = self.run is not None
        raise TrainingStopped(
            f"stopped by signal {number} after step {self.step}: {'saved, go on with --resume' if saved else 'not saved'}",
            f"收到信号 {number}，在第 {self.step} 步后停止：{'已保存，可用 --resume 继续' if saved else '未保存'}",
            signal_number=number,
        )

    def finish(self, reason: Reason) -> TrainingResult:
        """Last line, last validation, last checkpoint; then the weights worth keeping go into the module."""
        window = self.updater.read()
        if window.updates or window.skipped:
            self.log()
        if self._evaluate is not None and self.selection.step != self.step:
            self.validate()
        self.save(final=True)
        self.stop_if_asked()
        average = self.settings.average
        weights = put_final_weights(
            self.module,
            snapshots=self.snapshots,
            steps=[] if average is None else self.snapshots.steps()[-average.last :],
            moving=self.updater.average,
            best=self.best,
            best_step=None if self.selection.best is None else self.selection.best.step,
        )
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
        )

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
