"""`Progress`: how far a training has come, a small value that is passed to a callback.

Nothing is printed here.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from headwise.language import say
from headwise.training.choices import TrainingSettings
from headwise.training.early_stopping import Best
from headwise.training.final_weights import FinalWeights

logger = logging.getLogger(__name__)

Phase = Literal["compiling", "training", "validating", "saving", "finished"]
Reason = Literal["steps", "patience", "time_limit", "data"]


@dataclass(frozen=True)
class Progress:
    phase: Phase
    step: int
    steps: int
    loss: float | None
    """Mean smoothed loss per target token, as last read from the device; None at first."""
    learning_rate: float
    tokens_per_second: float
    """Target tokens per second of training, without the time of validations and saves."""
    seconds: float
    """Since the run began, with earlier sessions."""
    seconds_left: float | None
    """Until the last step or the time limit, whichever is first; None if unknown."""
    metrics: Mapping[str, float] | None
    """Of the last validation."""


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended; the module holds the weights that `weights` names."""

    step: int
    reason: Reason
    weights: FinalWeights
    best: Best | None
    metrics: Mapping[str, float] | None
    """The last validation of this session."""
    target_tokens: int
    seconds: float
    skipped: int
    """Updates that were skipped because a number was not finite."""
    precision: str = ""
    """Number format of matrix products: fp32 or bf16."""
    compiled: bool = False


ProgressCallback = Callable[[Progress], None]


class Clock:
    """Time since the run began, and time spent on updates alone."""

    def __init__(self, *, seconds_before: float) -> None:
        self._before = seconds_before
        self._start = self._mark = time.monotonic()
        self._paused = 0.0
        self._steps = 0

    def elapsed(self) -> float:
        return self._before + time.monotonic() - self._start

    def warn_if_over(self, time_limit: float | None) -> None:
        """Warn if earlier sessions have already used up the time limit."""
        if time_limit is not None and self._before >= time_limit:
            logger.warning(
                "%s",
                say(
                    f"training.time_limit={time_limit:g} counts the time of earlier sessions too, "
                    f"which took {self._before:.1f} s: no step is taken; raise it to go on "
                    "learning",
                    f"training.time_limit={time_limit:g} 也计入此前的时间，已用 "
                    f"{self._before:.1f} 秒：不再训练；若要继续，请增大它",
                ),
            )

    def pause(self, seconds: float) -> None:
        """Exclude this many seconds from the time of updates."""
        self._paused += seconds

    def window(self) -> float:
        """Seconds of updates since the last line of the log."""
        return max(time.monotonic() - self._mark - self._paused, 1e-9)

    def start_window(self) -> None:
        self._mark, self._paused = time.monotonic(), 0.0

    def count_step(self) -> None:
        self._steps += 1

    def seconds_left(self, *, steps_left: int, time_limit: float | None) -> float | None:
        guesses = []
        if self._steps:
            guesses.append((time.monotonic() - self._start) / self._steps * steps_left)
        if time_limit is not None:
            guesses.append(max(0.0, time_limit - self.elapsed()))
        return min(guesses) if guesses else None


class Reporter:
    """Stores the latest numbers and passes them to the callback, if there is one."""

    def __init__(self, callback: ProgressCallback | None, settings: TrainingSettings) -> None:
        self._callback, self._settings = callback, settings
        self.loss: float | None = None
        self.tokens_per_second = 0.0
        self.metrics: Mapping[str, float] | None = None

    def report(self, phase: Phase, step: int, *, clock: Clock, learning_rate: float) -> None:
        if self._callback is None:
            return
        steps, limit = self._settings.steps, self._settings.time_limit
        self._callback(
            Progress(
                phase=phase,
                step=step,
                steps=steps,
                loss=self.loss,
                learning_rate=learning_rate,
                tokens_per_second=self.tokens_per_second,
                seconds=clock.elapsed(),
                seconds_left=clock.seconds_left(steps_left=steps - step, time_limit=limit),
                metrics=self.metrics,
            )
        )
