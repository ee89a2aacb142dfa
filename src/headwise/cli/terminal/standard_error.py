"""Standard error whose write failures are ignored, so that training goes on without its reader.

If a terminal is closed during training, `tee` dies, or the disk of a log file is full, writing a
line of progress raises an error, which would end the training before it could save. Standard output
is different: it holds the result, and a lost result must be reported.

Tested with a terminal that is closed and a reader that goes away.
"""

import io
import sys
from typing import Any


class _Forgiving(io.FileIO):
    """A file whose failing writes are treated as done."""

    def write(self, content: Any, /) -> int:
        try:
            return super().write(content) or 0
        except OSError:
            return memoryview(content).nbytes


def ignore_write_failures() -> None:
    """Replace standard error from now on. A standard error that is not the process's own (in a test
    or a notebook) is left alone.
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
