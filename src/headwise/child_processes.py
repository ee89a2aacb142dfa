"""Starts child processes that are isolated from the working directory and end with their parent.

Two things go wrong when a program starts `python -m something`. First, Python searches modules in
the current directory, so that a `random.py` next to a corpus would be executed; `-P` prevents this,
and an empty entry of PYTHONPATH, which means the same directory, is removed. Second, children keep
running when their parent is killed. Here each child holds one end of a pipe whose other end only
the parent has, and a thread waits on it: when the parent is gone, the child gets a SIGTERM
(training saves and ends), and a SIGKILL some minutes later.

    subprocess.Popen(child_command("headwise", "train", …), **child_options(), stdin=…)

Run as a program, this file is the start of every child. Tested with hostile modules in the working
directory of every command that starts children, and with parents that are killed.
"""

import os
import runpy
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

GRACE_SECONDS = 300.0
"""Between SIGTERM and SIGKILL of a child whose parent is gone: enough to finish a step and save."""

_lifeline: list[int] = []
"""The pipe of this process: the end for its children, and the end that only this process holds."""
_lock = threading.Lock()


def child_command(module: str, *arguments: str) -> list[str]:
    """The command that runs one of our modules as a program, with the current Python."""
    return [
        sys.executable,
        "-P",
        "-m",
        "headwise.child_processes",
        str(_open_lifeline()),
        module,
        *arguments,
    ]


def child_options(*, files: Sequence[int] = ()) -> dict[str, Any]:
    """Options for `subprocess.Popen` and asyncio; `files` are open files for the child.

    The child has a session of its own: Ctrl-C in the terminal reaches only the parent, which
    decides what its children do.
    """
    return {
        "env": _environment(),
        "pass_fds": (_open_lifeline(), *files),
        "start_new_session": True,
    }


def _environment() -> dict[str, str]:
    """Our environment, with the running package first and without the working directory."""
    package = str(Path(__file__).resolve().parents[1])
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([package, *filter(None, given)]),
        "PYTHONUTF8": "1",
    }


def _open_lifeline() -> int:
    with _lock:
        if not _lifeline:
            _lifeline.extend(os.pipe())  # Python gives neither end to a child unless told to
        return _lifeline[0]


def _forget_lifeline() -> None:
    """A process forked from this one must not hold this process's pipe open."""
    for descriptor in _lifeline:
        os.close(descriptor)
    _lifeline.clear()


os.register_at_fork(after_in_child=_forget_lifeline)


def _end_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)  # nothing is ever written: this returns when the parent's end is closed
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


def main(arguments: Sequence[str]) -> None:
    """The start of a child: watch the parent, then run the requested module."""
    lifeline, module, *rest = arguments
    os.set_inheritable(int(lifeline), False)  # noqa: FBT003 - as the library has it
    threading.Thread(
        target=_end_with_parent, args=[int(lifeline)], name="headwise-parent", daemon=True
    ).start()
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
