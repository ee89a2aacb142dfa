"""R1 and R3, promises to people whose machine is taken away: kill it any time, resume, and nothing
shows in the result."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwise.storage import sha256_of
from headwise.training.session import TIMINGS
from tests.survival.background import Background
from tests.survival.conftest import NUM_KILLS, ShortForms
from tests.survival.interrupted import CASES, STEPS, TRANSLATOR


def untimed_log(path: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (path / "log.jsonl").read_text(encoding="utf-8").splitlines())
    return [{key: value for key, value in line.items() if key not in TIMINGS} for line in lines]


def assert_same_result(disturbed: Path, undisturbed: Path) -> None:
    final = (
        "model/weights.safetensors" if disturbed.name.endswith(TRANSLATOR) else "final.safetensors"
    )
    assert sha256_of(disturbed / final) == sha256_of(undisturbed / final)
    assert untimed_log(disturbed) == untimed_log(undisturbed)
    assert (disturbed / "LATEST").read_text() == f"step-{STEPS}\n"
    assert not [path for path in disturbed.rglob("*") if path.suffix in (".incomplete", ".retired")]


def check_kills(directory: Path, report: dict[str, Any], num_kills: int) -> None:
    assert sum(report["phases"].values()) == num_kills
    for series in report["series"]:
        assert series["status"] == 0
        assert_same_result(directory / series["path"], directory / f"whole-{series['variant']}")


def test_kills_leave_no_trace(short_forms: ShortForms) -> None:
    directory = short_forms.directory / "interrupted"
    check_kills(directory, short_forms.interrupted.answer()["kills"], NUM_KILLS)


@pytest.mark.prove
def test_a_hundred_kills_leave_no_trace(tmp_path: Path, record: Callable[..., None]) -> None:
    report = Background("interrupted", tmp_path, 100, 10, 0).answer()["kills"]
    check_kills(tmp_path, report, 100)
    phases, epochs = report["phases"], report["epochs"]
    inside = phases.get("saving", 0)
    assert inside >= 20, phases
    assert all(epochs[epoch] >= 1 for epoch in "012"), epochs
    variants = sorted({series["variant"] for series in report["series"]})
    names = {"finished": "writing the model", "starting": "starting or preparing data"}
    shown = ", ".join(
        f"{count} {names.get(phase, phase)}" for phase, count in sorted(phases.items())
    )
    record(
        "R1",
        f"100 random `kill -9` of {len(report['series'])} runs ({', '.join(variants)}), while: "
        f"{shown}; {epochs['0']}, {epochs['1']} and {epochs['2']} in epochs 0, 1 and 2",
        f"{inside} inside a save; SHA-256 of the weights and every line of the log equal to "
        "undisturbed runs",
    )


def check_signals(directory: Path, answers: list[dict[str, Any]]) -> None:
    expected = {name: 128 + case["numbers"][-1] for name, case in CASES.items()}
    for answer in answers:
        assert answer["status"] == expected[answer["case"]], answer
        assert answer["seconds"] < 10, answer
        assert answer["resumed"] == 0, answer
        assert answer["second_trainer"] in (None, 2), answer
        assert_same_result(directory / answer["path"], directory / "whole-plain")


def test_signals_save_and_tell_the_shell(short_forms: ShortForms) -> None:
    answers = short_forms.interrupted.answer()["signals"]
    assert [answer["case"] for answer in answers] == list(CASES)
    check_signals(short_forms.directory / "interrupted", answers)


@pytest.mark.prove
def test_forty_signals(tmp_path: Path, record: Callable[..., None]) -> None:
    answers = Background("interrupted", tmp_path, 0, 1, 8).answer()["signals"]
    check_signals(tmp_path, answers)
    slowest = max(answer["seconds"] for answer in answers)
    record(
        "R3",
        f"{len(answers)} signals: SIGTERM, SIGINT, SIGTERM inside a save, inside a validation, "
        f"SIGINT then SIGTERM; {sum(answer['second_trainer'] == 2 for answer in answers)} second "
        "trainers tried meanwhile",
        f"status 143 or 130, at most {slowest:.2f} s; every second trainer refused; resumed "
        "to the same weights and log",
    )
