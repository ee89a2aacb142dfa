"""Makes sure that the process has a standard input, output and error.

A shell (`>&-`), cron or a service manager may start a program with some of them closed. Python then
has None in place of the stream, and the next file that is opened gets its number: a message for
standard error could be written into a model. So they are opened on /dev/null, as POSIX advises
for programs that are to be trusted: reading ends at once, and what is written is dropped.

Tested with processes that start without them.
"""

import io
import os
import sys


def open_missing_streams() -> None:
    """Open the closed ones of standard input, output and error on /dev/null."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            # Under another number first: only a copy is passed on to child processes.
            opened = os.dup(os.open(os.devnull, os.O_RDWR))
            os.dup2(opened, number)
            os.close(opened)
        raw = io.FileIO(number, mode, closefd=False)
        buffer = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
        stream = io.TextIOWrapper(buffer, encoding="utf-8", errors="backslashreplace")
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
