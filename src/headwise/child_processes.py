"""Starting a process of our own: one command for all of them, isolated from the working directory,
ending with its parent.

Two things go wrong when a program starts `python -m something`. Python puts the current directory
first among the places where modules are looked for, so a `random.py` beside somebody's corpus would
be run; `-P` leaves it out, and an empty entry of PYTHONPATH, which means the same directory, is
dropped. And a parent that is killed leaves its children running; here each child holds one end of a
pipe whose other end is the parent's alone, and waits for it in a thread: when the parent is gone,
for whatever reason, the child gets a SIGTERM (training saves and ends), and is killed if it is
still there some minutes later.

    subprocess.Popen(child_command("headwise", "train", …), **child_options(), stdin=…)

Run as a program, this file is the beginning of every child. Tested with hostile modules in the
working directory of every command that starts children, and with parents that are killed.
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
"""Between the SIGTERM of a child whose parent is gone and its end by force: enough to finish a step
and to save."""

_lifeline: list[int] = []
"""The pipe of this process: the end its children inherit, and the end that only this process holds."""
_lock = threading.Lock()


def child_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of ours as a program, in the Python that runs now."""
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
    """How it is started, for `subprocess.Popen` and for asyncio alike; `files` are open ones that
    it is given.

    A session of its own: Ctrl-C in the terminal reaches the parent alone, which decides what its
    children do.
    """
    return {
        "env": _environment(),
        "pass_fds": (_open_lifeline(), *files),
        "start_new_session": True,
    }


def _environment() -> dict[str, str]:
    """Ours, with the package that runs now, installed or not, first; and without the working
    directory.
    """
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
    """A process forked from this one must not keep this one's children waiting."""
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
    """The beginning of a child: watch the parent, then be the module that was asked for."""
    lifeline, module, *rest = arguments
    os.set_inheritable(int(lifeline), False)  # noqa: FBT003 - as the library has it
    threading.Thread(
        target=_end_with_parent, args=[int(lifeline)], name="headwise-parent", daemon=True
    ).start()
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
