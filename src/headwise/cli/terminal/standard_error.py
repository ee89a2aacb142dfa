"""Standard error that cannot fail: what nobody can read any more is dropped, and the work goes on.

A terminal is closed in the middle of a training, `tee` dies, the disk of a log file is full:
writing a line of progress then raises an error, which would end the training before it could save.
Progress is not worth that. Standard output is not treated so: what is written there is the result,
and a result that is lost must be told.

Tested with a terminal that is closed and a reader that goes away.
"""

import io
import sys
from typing import Any


class _Forgiving(io.FileIO):
    """The file that is open already; a failing write is taken for done."""

    def write(self, content: Any, /) -> int:
        try:
            return super().write(content) or 0
        except OSError:
            return memoryview(content).nbytes


def ignore_write_failures() -> None:
    """From now on; a standard error that is not the process's own (a test's, a notebook's) is left
    alone.
    """
    stream = sys.stderr
    if not isinstance(stream, io.TextIOWrapper) or stream is not sys.__stderr__ or stream.closed:
        return
    stream.flush()
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Forgiving(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=True,
    )
