"""Promises to people with several processors: the same training on any number of them, and none
that waits for a dead one.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from headwise.errors import HeadwiseError, TrainingStopped, UsageError
from headwise.storage import read_json
from headwise.training.checkpoint_saving import explain_lost_process
from headwise.training.checkpoints import read_checkpoint
from headwise.training.log_file import read_log
from headwise.training.process_group import (
    LostProcessError,
    OneProcess,
    detecting_lost_processes,
    exit_status_of,
    is_launched,
    join_processes,
    world_size,
)
from headwise.training.session import TIMINGS
from tests.processes import run_python

ROOT = Path(__file__).parents[2]
CLOSE = {"rel": 1e-5, "abs": 1e-6}


def run_several(directory: Path, *scenarios: str, timeout: float = 300) -> dict[str, Any]:
    done = run_python(
        [sys.executable, "-m", "tests.training.several", str(directory), *scenarios],
        cwd=ROOT,
        env={
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "PATH": "/usr/bin:/bin",
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


def untimed_log(path: Path) -> list[dict[str, Any]]:
    return [
        {k: v for k, v in line.items() if k not in TIMINGS} for line in read_log(path / "log.jsonl")
    ]


def final_weights(path: Path, number: int = 0) -> dict[str, Any]:
    return read_json(path / f"final-{number}.json")


def assert_same_training(one: Path, other: Path) -> None:
    """Every line of the log to 1e-5, tokens and steps exactly, and the weights."""
    for line, expected in zip(untimed_log(one), untimed_log(other), strict=True):
        floats = {name for name, value in expected.items() if isinstance(value, float)}
        assert {"loss"} <= floats
        assert line == {
            k: pytest.approx(v, **CLOSE) if k in floats else v for k, v in expected.items()
        }
    for name, weights in final_weights(one).items():
        torch.testing.assert_close(
            torch.tensor(weights), torch.tensor(final_weights(other)[name]), rtol=1e-4, atol=1e-5
        )


def assert_same_bits(one: Path, other: Path) -> None:
    assert final_weights(one) == final_weights(other)
    assert untimed_log(one) == untimed_log(other)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    directory = tmp_path_factory.mktemp("several")
    scenarios = ("layouts", "ddp", "extras", "exchange", "undisturbed", "kill", "stop")
    return directory, run_several(directory, *scenarios)


@pytest.mark.parametrize("layout", ["replicated-2", "replicated-4", "sharded-2"])
def test_losses_do_not_depend_on_the_number_of_processes(outcome, layout):
    directory, report = outcome
    assert set(report["layouts"][layout]) == {0}
    assert_same_training(directory / "layouts" / layout, directory / "layouts" / "alone")


@pytest.mark.parametrize("layout", ["replicated-2", "sharded-2"])
def test_nor_do_dropout_and_averages_if_processes_take_whole_batches(outcome, layout):
    directory, report = outcome
    assert set(report["extras"][layout]) == {0}
    assert_same_training(directory / "extras" / layout, directory / "extras" / "alone")


def test_gradients_are_processes_times_those_of_torchs_ddp(outcome):
    assert outcome[1]["ddp"] == [0, 0, 0]


def test_all_processes_end_with_the_same_weights(outcome):
    directory, _ = outcome
    for path in (directory / "layouts" / "replicated-2", directory / "extras" / "sharded-2"):
        assert final_weights(path, 0) == final_weights(path, 1)


def test_a_checkpoint_goes_on_with_any_number_of_processes(outcome):
    directory, report = outcome
    assert {status for group in report["exchange"] for status in group} == {0}
    alone = directory / "layouts" / "alone"
    train_lines = [line for line in untimed_log(directory / "exchange") if line["kind"] == "train"]
    expected = [line for line in untimed_log(alone) if line["kind"] == "train"]
    assert [line["loss"] for line in train_lines] == pytest.approx(
        [line["loss"] for line in expected], **CLOSE
    )
    states = [
        read_checkpoint(path / "checkpoints/step-20").optimizer
        for path in (directory / "exchange", alone)
    ]
    assert states[0].keys() == states[1].keys()
    for name, tensor in states[0].items():
        torch.testing.assert_close(tensor, states[1][name], rtol=1e-4, atol=1e-6)


def test_a_killed_process_ends_the_run_with_a_checkpoint(outcome):
    directory, report = outcome
    assert report["kill"]["statuses"] == [[1, -9]]
    assert max(report["kill"]["seconds"]) < 5
    said = (directory / "killed-1/said.txt").read_text(encoding="utf-8")
    assert said.count("another process of this run was lost after step") == 1
    assert "is saved: start it again with --resume" in said
    assert report["kill"]["end"] == [0, 0]
    assert_same_bits(directory / "killed-1", directory / "undisturbed")


def test_a_signal_to_one_process_stops_all(outcome):
    directory, report = outcome
    assert report["stop"] == {"statuses": [143, 143], "end": [0, 0]}
    said = (directory / "stopped-1/said.txt").read_text(encoding="utf-8")
    assert said.count("stopped (SIGTERM) after step") == 1
    assert_same_bits(directory / "stopped-1", directory / "undisturbed")


@pytest.mark.prove
def test_many_kills_leave_no_trace(tmp_path):
    report = run_several(tmp_path, "undisturbed", "undisturbed-long", "kills", "stops", timeout=600)
    for victim, found in enumerate(report["kills"]):
        assert all(
            statuses[victim] == -9 and statuses[1 - victim] == 1 for statuses in found["statuses"]
        )
        assert max(found["seconds"]) < 15
        assert found["end"] == [0, 0]
        assert_same_bits(tmp_path / f"killed-{victim}", tmp_path / "undisturbed-long")
        assert report["stops"][victim] == {"statuses": [143, 143], "end": [0, 0]}
        assert_same_bits(tmp_path / f"stopped-{victim}", tmp_path / "undisturbed")


@pytest.mark.prove
@pytest.mark.parametrize(("name", "path"), [("4", "killed-of-4"), ("sharded", "killed-sharded")])
def test_kills_of_one_among_four_and_of_one_that_holds_a_part(tmp_path, name, path):
    report = run_several(tmp_path, f"undisturbed-{name}", f"kills-{name}", timeout=600)
    found = report[f"kills-{name}"]
    assert all(sorted(set(statuses)) == [-9, 1] for statuses in found["statuses"])
    assert set(found["end"]) == {0}
    assert_same_bits(tmp_path / path, tmp_path / f"undisturbed-{name}")


@pytest.mark.prove
def test_rows_that_do_not_divide_evenly(tmp_path):
    run_several(tmp_path, "layouts", "odd")
    assert_same_training(tmp_path / "layouts/sharded-3", tmp_path / "layouts/alone")


@pytest.mark.prove
def test_a_process_that_does_not_answer_is_given_up(tmp_path):
    report = run_several(tmp_path, "stall")
    assert report["stall"]["status"] == 1
    assert report["stall"]["seconds"] < 10
    assert "was lost after step" in (tmp_path / "stalled/said.txt").read_text(encoding="utf-8")


def test_one_process_is_alone(monkeypatch):
    monkeypatch.setattr(os, "environ", {"RANK": "0", "WORLD_SIZE": "1"})
    assert not is_launched()
    with join_processes() as processes:
        assert isinstance(processes, OneProcess)
        assert (processes.greatest(3), processes.ask_first(lambda: "found")) == (3, "found")


def test_other_errors_are_not_taken_for_a_loss():
    with pytest.raises(RuntimeError, match="out of memory"), detecting_lost_processes():
        raise RuntimeError("out of memory")
    with (
        pytest.raises(LostProcessError, match="another process of this run is gone"),
        detecting_lost_processes(),
    ):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:553] Connection closed by peer")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (HeadwiseError("a", "b"), 1),
        (TrainingStopped("a", "b", signal_number=15), 143),
        (SystemExit(143), 143),
        (KeyboardInterrupt(), 130),
        (ZeroDivisionError(), 1),
    ],
)
def test_the_status_a_shell_will_see(error, status):
    assert exit_status_of(error) == status


def test_a_loss_says_what_is_saved():
    assert "step 5 is saved: start it again with --resume" in str(explain_lost_process(7, saved=5))
    assert "nothing had been saved yet: start it again from the beginning" in str(
        explain_lost_process(7, saved=None)
    )
    assert "saved" not in str(explain_lost_process(7, saved=None, known=False))


@pytest.mark.parametrize("value", ["abc", "", "-1", "0"])
def test_a_number_of_processes_that_is_none_counts_only_under_torchrun(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", value)
    assert world_size() == 1
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "0")
    with pytest.raises(UsageError, match=r"WORLD_SIZE is .*, but the number of processes is"):
        world_size()
