"""Limits the rate of the server's log: the same line at most ten times a minute.

Otherwise a client could fill the disk by causing log lines. Two lines are the same if their logger
and their format string are equal. The next line that is written says how many were left out.
Tested: by hand-worked times.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LINES, SECONDS = 10, 60.0
MAX_KINDS = 256
LOGGERS = ("headwise", "uvicorn", "asyncio")


class RepeatedLineFilter(logging.Filter):
    """Lets the same line pass `LINES` times in `SECONDS`."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}
        """Start of the period and number of lines, by logger and format string."""

    def filter(self, record: logging.LogRecord) -> bool:
        now, kind = self._clock(), (record.name, str(record.msg)[:200])
        start, count = self._seen.get(kind, (now, 0))
        if now - start >= SECONDS:
            if count > LINES:
                record.msg = f"{record.msg} ({count - LINES} more such lines were left out)"
            start, count = now, 0
        if len(self._seen) >= MAX_KINDS and kind not in self._seen:
            self._seen.clear()
        self._seen[kind] = (start, count + 1)
        return count < LINES


@contextmanager
def limit_repeated_lines() -> Iterator[None]:
    """Filter every logger that a server writes to.

    Each logger needs the filter: a logger's filter does not see the lines of its children.
    """
    repeated = RepeatedLineFilter()
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in LOGGERS]
    for name in names:
        logging.getLogger(name).addFilter(repeated)
    try:
        yield
    finally:
        for name in names:
            logging.getLogger(name).removeFilter(repeated)
