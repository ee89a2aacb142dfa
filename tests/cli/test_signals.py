"""A signal ends a training with a saved state and the usual status; --resume goes on from there. So
does a closed terminal."""

import hashlib
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from headwise.cli import recipes
from headwise.cli.main import main
from tests.processes import Python, run_python
from tests.tasks.tiny import OVERRIDES

LENGTH = ["training.steps=100", "training.checkpoint_every=20"]
HEADWISE = [sys.executable, "-m", "headwise"]
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
SILENT: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
WORDS = ["train", "pocket", *OVERRIDES, *LENGTH, "data.test=null", "data.valid=null", "--run"]


def digest(run: Path) -> str:
    return hashlib.sha256((run / "model" / "weights.safetensors").read_bytes()).hexdigest()


@pytest.fixture(scope="module", name="whole")
def _whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("whole") / "run"
    # An interpreter of its own, with hash seeds of its own; what earlier tests changed in this
    # process (threads, say) would change the last bits.
    subprocess.run([*HEADWISE, *WORDS, str(run)], check=True, env=ONE_THREAD, **SILENT)
    return run


@pytest.mark.parametrize(
    ("number", "status"),
    [
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.prove),
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGUSR1, 138, marks=pytest.mark.prove),
    ],
)
def test_a_signal_saves_and_resuming_gives_the_same_model(
    number: int, status: int, whole: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    process = Python(
        [*HEADWISE, *WORDS, str(run)], stderr=subprocess.PIPE, text=True, env=ONE_THREAD
    )
    deadline = time.monotonic() + 60
    while not (run / "LATEST").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == status, said
    name = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
    last = said.splitlines()[-1]
    assert re.fullmatch(
        rf"headwise: stopped \({name}\) after step \d+; saved; go on with: headwise train .*", last
    ), said
    go_on = shlex.split(last.partition("go on with: headwise ")[2])
    assert go_on == ["train", "--run", str(run), "--resume"], (
        "the run keeps its recipe and the changes"
    )
    assert "Traceback" not in said
    assert not (run / "model").exists()
    run_python([*HEADWISE, *go_on], check=True, env=ONE_THREAD, **SILENT)
    assert digest(run) == digest(whole)


def train_on_a_terminal(run: Path) -> tuple[Python, int]:
    """A training that never ends, on a terminal of its own: its process and our end of the
    terminal."""
    words = [*HEADWISE, *WORDS, str(run), "training.steps=100000"]
    terminal, theirs = os.openpty()
    child = Python(words, stdin=theirs, stdout=theirs, stderr=theirs, terminal=True, env=ONE_THREAD)
    os.close(theirs)
    deadline = time.monotonic() + 60
    while not (run / "LATEST").exists():
        assert time.monotonic() < deadline
        if select.select([terminal], [], [], 0.05)[0]:
            os.read(terminal, 65_536)
    return child, terminal


def test_a_terminal_that_is_closed_saves(tmp_path: Path) -> None:
    """The system sends SIGHUP, and every line of progress from then on cannot be written."""
    run = tmp_path / "run"
    child, terminal = train_on_a_terminal(run)
    os.close(terminal)
    assert child.wait(timeout=60) == 129
    logged = [json.loads(line)["step"] for line in (run / "log.jsonl").read_text().splitlines()]
    saved = int((run / "LATEST").read_text().removeprefix("step-"))
    assert saved >= max(logged)


@pytest.mark.prove
def test_nohup_is_respected(tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = [*WORDS, str(run), "training.steps=100000"]
    process = subprocess.Popen(["nohup", *HEADWISE, *words], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (run / "LATEST").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGHUP)
    seen = (run / "LATEST").read_text()
    while (run / "LATEST").read_text() == seen:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.terminate()
    assert process.wait(timeout=60) == 143


def test_a_reader_of_progress_that_goes_away_ends_nothing(tmp_path: Path) -> None:
    """As `headwise train … 2>&1 | tee log`, where tee is ended."""
    reader, writer = os.pipe()
    os.close(reader)
    words = [*WORDS, str(tmp_path / "run"), "training.steps=4"]
    done = run_python([*HEADWISE, *words], stderr=writer, timeout=120)
    os.close(writer)
    assert done.returncode == 0
    assert (tmp_path / "run" / "model").is_dir()


def heeding_hangups() -> None:
    """In a child: the tests themselves may run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGUSR1, 138)]
)
def test_a_stop_while_the_data_is_prepared_leaves_nothing(
    number: int, status: int, tmp_path: Path
) -> None:
    run = tmp_path / "new" / "run"
    words = ["train", "pocket", "--run", str(run), "data.train.count=1000000"]
    process = Python([*HEADWISE, *words], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (run / "recipe.yaml").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == status
    assert "Traceback" not in said
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_to_a_command_that_is_done_does_not_change_its_status(number: int) -> None:
    """It arrives while Python ends."""
    code = (
        "import atexit, os, sys; from headwise.cli.main import main; "
        f"atexit.register(os.kill, os.getpid(), {int(number)}); "
        "sys.argv = ['headwise', 'recipes']; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=heeding_hangups,
    )
    assert done.returncode == 0, done.stderr
    assert "pocket" in done.stdout


def test_the_first_signal_gives_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hangup is handled by whoever handles SIGTERM by then, here a server that ends its
    connections and then ends by the SIGTERM that it saw."""
    seen: list[int] = []

    def serve(parsed: object) -> int:
        former = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
        signal.raise_signal(signal.SIGHUP)
        assert seen == [signal.SIGTERM]
        signal.signal(signal.SIGTERM, former)
        signal.raise_signal(seen[0])
        return 0

    monkeypatch.setattr(recipes, "run", serve)
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with pytest.raises(SystemExit, match="129"):
            main(["recipes"])
    finally:
        signal.signal(signal.SIGHUP, former)
    assert {one: signal.getsignal(one) for one in before} == before
