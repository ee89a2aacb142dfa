"""The same line of the log at most ten times a minute: no client can fill a disk with what it makes
the server say.

Lines are the same if their logger and their text before numbers are filled in are. How many were
left out is told with the next that is written. Tested: by hand-worked times.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINES, SECONDS = 10, 60.0
MAX_KINDS = 256
LOGGERS = ("headwise", "uvicorn", "asyncio")


class FewLines(logging.Filter):
    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        now, kind = self._clock(), (record.name, str(record.msg)[:200])
        begun, count = self._seen.get(kind, (now, 0))
        if now - begun >= SECONDS:
            if count > LINES:
                record.msg = f"{record.msg} ({count - LINES} more such lines were left out)"
            begun, count = now, 0
        if len(self._seen) >= MAX_KINDS and kind not in self._seen:
            self._seen.clear()
        self._seen[kind] = (begun, count + 1)
        return count < LINES


@contextmanager
def few_log_lines() -> Iterator[None]:
    """For every logger that a server writes to, while it runs; a filter of a logger is not asked
    about what its children write.
    """
    few = FewLines()
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in LOGGERS]
    for name in names:
        logging.getLogger(name).addFilter(few)
    try:
        yield
    finally:
        for name in names:
            logging.getLogger(name).removeFilter(few)
