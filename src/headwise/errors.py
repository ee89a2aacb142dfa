"""The exception classes of Headwise, by cause, each with the exit status of the command line.

A message has three parts: what was given, what is required, what to do. It is written where it is
raised, in English and Chinese; data errors have the file and the line.
"""

import re
from pathlib import Path

from headwise.language import say

_MEMORY = re.compile(
    r"can't allocate memory|not enough memory|out of memory|bad_alloc|Cannot allocate memory"
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out; Python, numpy and torch report it differently."""
    return isinstance(error, MemoryError) or _MEMORY.search(str(error)) is not None


class StoppedBySignal(SystemExit):
    """A signal ends the command; the exit status is 128 plus its number.

    A class of its own, so that whoever catches what foreign code raises lets it pass.
    """

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)


class HeadwiseError(Exception):
    """Base of all errors shown to users; `exit_status` is that of the command line."""

    exit_status = 1

    def __init__(
        self, en: str, zh: str, *, file: Path | str | None = None, line: int | None = None
    ) -> None:
        self.en, self.zh, self.file, self.line = en, zh, file, line
        super().__init__(en)

    def __str__(self) -> str:
        place = (
            ""
            if self.file is None
            else f"{self.file}: "
            if self.line is None
            else f"{self.file}:{self.line}: "
        )
        return place + say(self.en, self.zh)


class UsageError(HeadwiseError, ValueError):
    """The caller asked for something impossible: a wrong argument, name or combination."""

    exit_status = 2


class SettingsError(UsageError):
    """A recipe or an override is wrong; the message lists every problem at once."""


class MaskError(UsageError):
    """A kernel does not support this mask; the message names one that does."""


class DataError(HeadwiseError, ValueError):
    """Input data is missing, malformed or damaged."""

    exit_status = 3


class CheckpointError(DataError):
    """A saved file is missing, damaged or does not match."""


class TrainingStopped(HeadwiseError):  # noqa: N818 - being asked to stop is no error
    """Training ended by a signal after saving; the exit status is 128 + the signal's number.

    The caller knows how the run was started and adds how to continue it (`go_on_with`).
    """

    def __init__(self, en: str, zh: str, *, signal_number: int, saved: bool = False) -> None:
        super().__init__(
            f"{en}; {'saved; go on with resume=True' if saved else 'not saved'}",
            f"{zh}；{'已保存；以 resume=True 继续' if saved else '未保存'}",
        )
        self.stop, self.saved = (en, zh), saved
        self.exit_status = 128 + signal_number

    def go_on_with(self, command: str) -> str:
        """The same error with the command that continues the run."""
        en, zh = self.stop
        if not self.saved:
            return say(f"{en}; not saved", f"{zh}；未保存")
        return say(f"{en}; saved; go on with: {command}", f"{zh}；已保存；继续请用：{command}")


class SaidElsewhere(HeadwiseError):  # noqa: N818 - the error itself was said by another process
    """Ends a process of a run after another process has reported the error, with the same exit
    status.
    """

    def __init__(self, *, exit_status: int) -> None:
        super().__init__("said by another process", "已由另一个进程说明")
        self.exit_status = exit_status
