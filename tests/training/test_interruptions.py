"""Promises to people whose machine is taken away: kill it any time, resume, and nothing shows in the result."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headwise.storage import read_json
from headwise.training.journal import read_journal
from headwise.training.session import TIMINGS
from tests.training.interrupted import STEPS

ROOT = Path(__file__).parents[2]


def run_interrupted(directory: Path, *, num_kills: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.interrupted", str(directory), str(num_kills)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def untimed_log(path: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k not in TIMINGS} for line in read_journal(path / "log.jsonl")]


def assert_same_result(disturbed: Path, undisturbed: Path) -> None:
    assert read_json(disturbed / "final.json") == read_json(undisturbed / "final.json")
    assert untimed_log(disturbed) == untimed_log(undisturbed)
    assert (disturbed / "LATEST").read_text() == f"step-{STEPS}\n"
    assert not list(disturbed.rglob("*.incomplete"))


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    directory = tmp_path_factory.mktemp("interrupted")
    return directory, run_interrupted(directory, num_kills=6)


def test_kills_leave_no_trace(outcome):
    directory, report = outcome
    assert report["kills"]["kills"] >= 1
    assert report["kills"]["status"] == 0
    assert_same_result(directory / "killed", directory / "undisturbed")


@pytest.mark.parametrize(("name", "status"), [("term", 143), ("interrupt", 130), ("twice", 143), ("validating", 143)])
def test_signals_save_and_tell_the_shell(outcome, name, status):
    directory, report = outcome
    assert report["signals"][name]["status"] == status
    assert report["signals"][name]["seconds"] < 10
    assert report["signals"][name]["resumed"] == 0
    assert_same_result(directory / name, directory / "undisturbed")


@pytest.mark.prove
def test_a_hundred_kills_leave_no_trace(tmp_path):
    kills = inside_a_save = 0
    while kills < 100:
        directory = tmp_path / str(kills)
        report = run_interrupted(directory, num_kills=20)["kills"]
        assert report["status"] == 0
        assert_same_result(directory / "killed", directory / "undisturbed")
        kills, inside_a_save = kills + report["kills"], inside_a_save + report["inside_a_save"]
    assert inside_a_save >= 20, inside_a_save
