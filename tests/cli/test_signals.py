"""Ctrl-C and SIGTERM end a training with a saved state and the usual status; --resume goes on from there."""

import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headwise.cli.main import main
from tests.tasks.tiny import OVERRIDES

LENGTH = ["training.steps=100", "training.checkpoint_every=20"]
WORDS = ["train", "pocket", *OVERRIDES, *LENGTH, "data.test=null", "data.valid=null", "--run"]


def digest(run: Path) -> str:
    return hashlib.sha256((run / "model" / "weights.safetensors").read_bytes()).hexdigest()


@pytest.fixture(scope="module", name="whole")
def _whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("whole") / "run"
    assert main([*WORDS, str(run)]) == 0
    return run


@pytest.mark.parametrize(
    ("number", "status"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.prove), (signal.SIGTERM, 143)]
)
def test_a_signal_saves_and_resuming_gives_the_same_model(
    number: int, status: int, whole: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "headwise", *WORDS, str(run)], stderr=subprocess.PIPE, text=True, env=environment
    )
    deadline = time.monotonic() + 60
    while not (run / "LATEST").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == status, said
    name = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}[number]
    last = said.splitlines()[-1]
    assert re.fullmatch(rf"headwise: stopped \({name}\) after step \d+; saved; go on with: headwise train .*", last), (
        said
    )
    assert shlex.split(last.partition("go on with: headwise ")[2]) == [*WORDS, str(run), "--resume"]
    assert "Traceback" not in said
    assert not (run / "model").exists()
    assert main([*WORDS, str(run), "--resume"]) == 0
    assert digest(run) == digest(whole)


def test_a_stop_while_the_data_is_prepared_leaves_nothing(tmp_path: Path) -> None:
    run = tmp_path / "new" / "run"
    words = ["train", "pocket", "--run", str(run), "data.train.count=1000000"]
    process = subprocess.Popen([sys.executable, "-m", "headwise", *words], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (run / "recipe.yaml").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "Traceback" not in said
    assert not (tmp_path / "new").exists()
