"""S13: `numpy.py`, `torch.py`, `random.py` and others lie beside the corpus; no command runs them,
nor does any of its children."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headwise.cli.main import main
from headwise.data.pairs.encoding import BlockEncoder
from headwise.data.pairs.encoding_workers import encode_blocks
from headwise.data.pairs.filtering import FilterSettings, LengthLimits
from headwise.data.pairs.held_out import HeldOut
from headwise.data.pairs.parallel_files import Pair
from headwise.serving.work.bundle_files import BundleFiles
from headwise.serving.work.demo_training import DemoTraining
from headwise.serving.work.process_worker import ProcessWorker
from headwise.tasks.translation.translator import Translator
from headwise.text.choices import CharacterSettings, learn_tokenizers
from tests.explorer.conftest import BUNDLE
from tests.survival.hostile_directory import clean_environment, make_hostile, modules_that_ran
from tests.tasks.tiny import OVERRIDES

COMMAND = Path(sys.executable).parent / "headwise"


@pytest.fixture(name="hostile", autouse=True)
def _hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = make_hostile(tmp_path / "here")
    monkeypatch.chdir(directory)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return directory


@pytest.mark.parametrize("way", ["headwise", "python -m headwise"])
def test_the_command_line(way: str, hostile: Path) -> None:
    if way != "headwise":
        # Python itself looks for the package in the working directory before any line of ours is
        # run.
        (hostile / "headwise.py").unlink()
    begin = [str(COMMAND)] if way == "headwise" else [sys.executable, "-m", "headwise"]
    done = subprocess.run(
        [*begin, "translate", "--model", str(BUNDLE), "--text", "The dog is old."],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert modules_that_ran(hostile) == []


def test_processes_that_tokenise(hostile: Path, tmp_path: Path) -> None:
    tokenizers = learn_tokenizers(CharacterSettings(), ["ab"], ["ba"])
    (tmp_path / "tokenizers").mkdir()
    tokenizers.save(tmp_path / "tokenizers")
    encoder = BlockEncoder(tokenizers, FilterSettings(), LengthLimits(9, 9), HeldOut())
    blocks = [[Pair("ab", "ba", "file", 1)]] * 3
    assert (
        len(
            list(
                encode_blocks(
                    encoder, blocks, tokenizers=tmp_path / "tokenizers", num_processes=2, alone=0
                )
            )
        )
        == 3
    )
    assert modules_that_ran(hostile) == []


def test_the_process_that_searches(hostile: Path) -> None:
    async def play() -> None:
        worker = ProcessWorker(
            "tiny", Translator.load(BUNDLE), BundleFiles(BUNDLE), precision="fp32"
        )
        worker.start()
        await worker.start_process()
        until = time.monotonic() + 120
        while not worker.is_alive and not worker.num_restarts and time.monotonic() < until:
            await asyncio.sleep(0.05)
        assert worker.is_alive
        await worker.stop_process()
        worker.close()

    asyncio.run(play())
    assert modules_that_ran(hostile) == []


def test_the_training_that_the_page_asked_for(hostile: Path, tmp_path: Path) -> None:
    training = DemoTraining(tmp_path / "demo")
    training.start("en-de")
    try:
        until = time.monotonic() + 120
        while not (training.run / "recipe.yaml").exists() and time.monotonic() < until:
            assert training.is_running, training.status()
            time.sleep(0.05)
    finally:
        training.end()
    assert (hostile / "numpy.py").exists()
    assert modules_that_ran(hostile) == []


@pytest.mark.prove
def test_the_runs_of_a_comparison(hostile: Path, record: Callable[..., None]) -> None:
    words = ["pocket", *OVERRIDES, "training.steps=2", "model.norm.kind=layer,rms"]
    assert main(["compare", *words, "--directory", "comparison"]) == 0
    assert modules_that_ran(hostile) == []
    record(
        "S13",
        "hostile modules in the working directory of every command that starts processes",
        "none was run",
    )


@pytest.mark.prove
def test_processes_that_compile(hostile: Path) -> None:
    """torch's own: they are given the places where the command looks for modules."""
    (hostile / "headwise.py").unlink()
    words = [
        "train",
        "pocket",
        *OVERRIDES,
        "training.steps=2",
        "training.compile=on",
        "--run",
        "run",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "headwise", *words], env=clean_environment(), capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert modules_that_ran(hostile) == []
