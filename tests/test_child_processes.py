"""Child processes: no code from the working directory, none that outlives its parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwise.child_processes import child_command, child_options
from tests.survival.hostile_directory import make_hostile, modules_that_ran

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "headwise"
PARENT = """
import os, subprocess, sys, time
from headwise.child_processes import child_command, child_options
command = child_command("tests.survival.stubborn_child", *sys.argv[1:])
if sys.argv[2] == "ignores":  # and is not given five minutes
    begin = (
        "import sys; from headwise import child_processes as c; "
        "c.GRACE_SECONDS = 0.1; c.main(sys.argv[1:])"
    )
    command = [command[0], "-c", begin, *command[4:]]
child = subprocess.Popen(command, **child_options())
if sys.argv[2] == "beside a fork" and os.fork() == 0:
    os.setsid()
    time.sleep(20)
    os._exit(0)
print(child.pid, flush=True)
time.sleep(60)
"""


def wait_until_gone(pid: int, *, seconds: float) -> None:
    until = time.monotonic() + seconds
    while is_running(pid):
        assert time.monotonic() < until, f"process {pid} outlives its parent"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """An orphan that has ended may wait, as a zombie, for somebody to take note."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("pythonpath", [None, f"{os.pathsep}/nowhere"])
def test_the_working_directory_is_no_place_for_modules(
    pythonpath: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_hostile(tmp_path))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if pythonpath is not None:
        monkeypatch.setenv("PYTHONPATH", pythonpath)
    done = subprocess.run(
        child_command("json.tool", "--help"), **child_options(), capture_output=True, check=True
    )
    assert b"usage" in done.stdout
    assert modules_that_ran(tmp_path) == []


def test_nobody_else_starts_python() -> None:
    """One function knows how; whoever starts a process uses it."""
    files = {path.name: path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")}
    assert [name for name, text in files.items() if "sys.executable" in text] == [
        "child_processes.py"
    ]
    starters = {
        name for name, text in files.items() if "Popen(" in text or "subprocess_exec(" in text
    }
    starters -= {"child_processes.py"}
    assert len(starters) >= 4
    assert not [name for name in starters if "**child_options(" not in files[name]]
    forks = (
        "import multiprocessing",
        "ProcessPoolExecutor",
        "os.fork(",
        "os.system(",
        "os.spawn",
        "subprocess.run(",
    )
    assert not [(name, word) for name, text in files.items() for word in forks if word in text]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("way", ["obeys", "ignores", "beside a fork"])
def test_a_child_ends_with_a_parent_that_is_killed(way: str, tmp_path: Path) -> None:
    """SIGTERM first, so that training saves; by force if it does not listen; a forked copy of the
    parent is not the parent."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path / "heard"), way],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    until = time.monotonic() + 30
    while not (tmp_path / "heard").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    wait_until_gone(child, seconds=10 if way == "beside a fork" else 30)
    assert (tmp_path / "heard").read_text() == ("" if way == "ignores" else "SIGTERM")
