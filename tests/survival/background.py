"""Processes that work beside the tests: the short forms start all of theirs at once and are read
when needed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.processes import Python

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "tests" / "fixtures" / "format-1" / "bundle"
OWN_MOUNTS = ("unshare", "--mount", "--map-root-user")
ENVIRONMENT = {
    "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
}


class Background:
    """A module of this folder run as a program; `answer` waits for the JSON it prints."""

    def __init__(self, module: str, *arguments: object, before: tuple[str, ...] = ()) -> None:
        self._process = Python(
            [*before, sys.executable, "-m", f"tests.survival.{module}", *map(str, arguments)],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._answer: Any = None

    def answer(self, *, timeout: float = 1200) -> Any:
        if self._answer is None:
            out, errors = self._process.communicate(timeout=timeout)
            assert self._process.returncode == 0, errors
            self._answer = json.loads(out)
        return self._answer

    def stop(self) -> None:
        """End it, if nobody waited for its answer."""
        if self._answer is None:
            self._process.kill()
            self._process.communicate()


def may_mount() -> bool:
    """Whether this system lets a user mount in a namespace of their own."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*OWN_MOUNTS, "true"], capture_output=True).returncode == 0
