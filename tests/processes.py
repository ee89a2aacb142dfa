"""Processes of Python that start in a tenth of a second: forked from one per test process that has
imported torch and this package (`tests/process_server.py`).

`Python` and `run_python` stand for `subprocess.Popen` and `subprocess.run` of a command that begins
with `sys.executable`. They are for tests of what a command does: its signals, closed streams,
locks, status and text. A test of the start itself (what is imported, what lies in the working
directory, `-O`, variables that the interpreter reads) starts an interpreter of its own; so does
`Python` where the environment has other PYTHON… variables, and on systems that are not Linux. All
that is forked in one test process has one hash seed, and none of it takes its modules apart when it
ends. A signal that the tests ignore (SIGHUP, under nohup) is heeded.
"""

import atexit
import ctypes
import inspect
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.process_server import is_open, send

ROOT = Path(__file__).resolve().parents[1]
SERVER = ROOT / "tests" / "process_server.py"
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <sys/prctl.h>


@cache
def _server() -> Path:
    """The socket of the server, which ends with this process."""
    place = Path(tempfile.mkdtemp(prefix="headwise-")) / "socket"
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = f"{ROOT / 'src'}:{ROOT}"
    environment["OMP_WAIT_POLICY"] = "PASSIVE"
    process = subprocess.Popen(
        [sys.executable, "-P", str(SERVER), str(place)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        process_group=0,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"

    def end() -> None:
        process.communicate()
        place.unlink()
        place.parent.rmdir()

    atexit.register(end)
    return place


def shell_words() -> list[str]:
    """What stands for `python` in a line of a shell."""
    return [sys.executable, "-I", "-S", str(SERVER), str(_server())]


class Python(subprocess.Popen[Any]):
    """`subprocess.Popen`, for commands that begin with `sys.executable`; `terminal` makes standard
    input the terminal that controls the process, which then has a session of its own."""

    def __init__(self, words: Sequence[Any], *, terminal: bool = False, **options: Any) -> None:
        self._terminal = terminal
        options["start_new_session"] = options.get("start_new_session", False) or terminal
        super().__init__([os.fspath(word) for word in words], **options)

    def _execute_child(self, *values: Any) -> None:
        given = dict(zip(_PARAMETERS, values, strict=True))
        environment = dict(os.environ if given["env"] is None else given["env"])
        if not _may_be_forked(environment, given):
            assert not self._terminal
            super()._execute_child(*values)  # type: ignore[misc]
            return
        streams = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        files = {at: at if own < 0 else own for at, own in enumerate(streams)}
        files = {at: own for at, own in files.items() if is_open(own)}
        files |= {number: number for number in given["pass_fds"]}
        request = {
            "words": list(map(os.fsdecode, given["args"][1:])),
            "environment": {os.fsdecode(k): os.fsdecode(v) for k, v in environment.items()},
            "directory": os.fsdecode(given["cwd"] or os.getcwd()),
            "files": list(files),
            "group": os.getpgrp(),
            "session": bool(given["start_new_session"]),
            "terminal": self._terminal,
            "waits": False,
        }
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(_server()))
            _inherit_children(1)
            try:
                send(connection, request, list(files.values()))
                self.pid = int.from_bytes(connection.recv(8), "little")
            finally:
                _inherit_children(0)
        assert self.pid, "the server of processes has ended"
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in pipes))  # type: ignore[attr-defined]


_PARAMETERS = list(inspect.signature(subprocess.Popen._execute_child).parameters)[1:]  # type: ignore[attr-defined]


def _inherit_children(value: int) -> None:
    assert ctypes.CDLL(None).prctl(_SUBREAPER, value, 0, 0, 0) == 0


def _may_be_forked(environment: Mapping[str, str], given: Mapping[str, Any]) -> bool:
    """Whether the server can do what is asked for."""
    return (
        sys.platform == "linux"
        and given["args"][0] == sys.executable
        and (given["args"][1] in ("-P", "-m", "-c") or not given["args"][1].startswith("-"))
        and given["preexec_fn"] is None
        and given["process_group"] == -1
        and _of_interpreter(environment) == _of_interpreter(os.environ)
    )


def _of_interpreter(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that an interpreter reads when it starts and never again."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith("PYTHON") and name != "PYTHONPATH"
    }


def run_python(
    words: Sequence[Any],
    *,
    capture_output: bool = False,
    check: bool = False,
    timeout: float | None = 240,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run`, for commands that begin with `sys.executable`."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Python(words, **options) as process:
        try:
            out, errors = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(words, process.returncode, out, errors)
    if check:
        done.check_returncode()
    return done
