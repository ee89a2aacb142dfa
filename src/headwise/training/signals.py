"""Handles signals: the first signal asks the loop to finish its step and save, the second ends at
once.

    SIGTERM   a scheduler or `kill`, before SIGKILL
    SIGINT    Ctrl-C
    SIGHUP    the terminal or its connection was closed (under nohup it stays ignored)
    SIGUSR1   a batch system's warning that time is nearly over (sbatch --signal=USR1@120)

Every save is atomic, so that the second signal is safe too. The exit status is 128 plus the number
of the signal in both cases: 143, 130, 129, 138.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, Self


def name_signal(number: int) -> str:
    """The usual name of a signal."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


def stop_signals() -> list[signal.Signals]:
    """The signals that save and end a training on this system."""
    asked = [signal.SIGTERM, signal.SIGINT]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        asked.append(signal.SIGHUP)
    if hasattr(signal, "SIGUSR1"):
        asked.append(signal.SIGUSR1)
    return asked


class Interrupted(BaseException):
    """Ends work that may stay unfinished (a validation, which a resumed run repeats)."""


class StopRequest:
    """While open, `signal_number` becomes the first signal that arrived."""

    def __init__(self) -> None:
        self.signal_number: int | None = None
        self._interruptible = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Python delivers signals to the main thread only; a loop elsewhere (a notebook's worker)
        # goes without.
        if threading.current_thread() is threading.main_thread():
            for number in stop_signals():
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.signal_number is not None:
            os._exit(128 + number)
        self.signal_number = number
        if self._interruptible:
            raise Interrupted

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Inside, a signal raises Interrupted at once."""
        self._interruptible = True
        try:
            yield
        finally:
            self._interruptible = False
