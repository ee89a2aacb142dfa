"""Logs of trainings: listed, read from where one stopped, and nothing outside the directory."""

import json
import os
from pathlib import Path

import pytest

from headwise.errors import DataError, UsageError
from headwise.explorer import run_logs
from headwise.explorer.run_logs import MAX_LINES, list_runs, read_run, thin


def write_run(path: Path, *steps: int, model: bool = False, extra: str = "") -> Path:
    path.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"kind": "train", "step": step, "loss": 10 / step, "note": "x"}) + "\n" for step in steps]
    (path / "log.jsonl").write_text("".join(lines) + extra, encoding="utf-8")
    if model:
        (path / "model").mkdir()
        (path / "model" / "MANIFEST.json").write_text("{}", encoding="utf-8")
        results = {"steps": 3, "test": {"bleu": {"value": 12.5}, "seconds": 0.1}, "valid": {"loss": float("nan")}}
        (path / "model" / "results.json").write_text(json.dumps(results), encoding="utf-8")
    return path


def test_runs_are_listed_newest_first_with_what_they_reached(tmp_path: Path) -> None:
    write_run(tmp_path / "old", 1, model=True)
    newer = write_run(tmp_path / "deep" / "er" / "new", 1, 2)
    (newer / "recipe.yaml").write_text("task: language_modeling\nmodel: {kind: lstm}\n", encoding="utf-8")
    write_run(tmp_path / "a" / "b" / "c" / "too-deep", 1)
    (tmp_path / "old" / "recipe.yaml").write_text("model: [broken", encoding="utf-8")
    os.utime(tmp_path / "old" / "log.jsonl", (1, 1))
    first, second = list_runs(tmp_path)
    assert (first.name, first.task, first.model, first.finished) == ("deep/er/new", "language_modeling", "lstm", False)
    assert (second.name, second.finished, second.task) == ("old", True, None)
    assert second.scores == {"steps": 3.0, "test.bleu": 12.5, "test.seconds": 0.1}


def test_a_directory_that_is_a_run_is_listed_by_a_dot(tmp_path: Path) -> None:
    write_run(tmp_path, 1, 2, 3)
    assert [run.name for run in list_runs(tmp_path)] == ["."]
    assert len(read_run(tmp_path, ".").lines) == 3


def test_a_live_run_hands_out_only_what_is_new(tmp_path: Path) -> None:
    log = write_run(tmp_path / "live", 1, 2, extra='{"kind": "train", "st') / "log.jsonl"
    first = read_run(tmp_path, "live")
    assert [line["step"] for line in first.lines] == [1, 2]
    assert "note" not in first.lines[0], "only numbers are drawn"
    with log.open("a", encoding="utf-8") as file:
        file.write('ep": 3, "loss": 3.5}\nnot json\n[1]\n{"step": "4"}\n')
    second = read_run(tmp_path, "live", after=first.offset)
    assert [(line["step"], line["loss"]) for line in second.lines] == [(3, 3.5)]
    assert not second.restarted
    assert read_run(tmp_path, "live", after=second.offset).lines == []


def test_a_log_that_was_cut_back_is_read_from_its_beginning(tmp_path: Path) -> None:
    write_run(tmp_path / "live", 1, 2, 3)
    end = read_run(tmp_path, "live").offset
    write_run(tmp_path / "live", 1)
    again = read_run(tmp_path, "live", after=end)
    assert again.restarted
    assert [line["step"] for line in again.lines] == [1]


def test_a_long_log_comes_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "long", *range(1, 30))
    monkeypatch.setattr(run_logs, "MAX_BYTES", 500)
    steps, offset, more = [], 0, True
    while more:
        part = read_run(tmp_path, "long", after=offset)
        steps += [line["step"] for line in part.lines]
        offset, more = part.offset, part.more
    assert steps == list(range(1, 30))


def test_thinning_keeps_both_kinds_and_the_last_line() -> None:
    lines = [{"kind": "valid" if step % 100 == 0 else "train", "step": step} for step in range(5 * MAX_LINES)]
    kept = thin(lines)
    assert sum(line["kind"] == "train" for line in kept) <= MAX_LINES
    assert sum(line["kind"] == "valid" for line in kept) == 100
    assert kept[-1] == lines[-1]
    assert [line["step"] for line in kept] == sorted(line["step"] for line in kept)


@pytest.mark.parametrize("name", ["../outside", "/etc", "link", "in\0side", "x" * 4000, "linked-log", "nothing"])
def test_names_that_lead_out_are_not_found(tmp_path: Path, name: str) -> None:
    root, outside = tmp_path / "root", write_run(tmp_path / "outside", 1)
    write_run(root / "inside", 1)
    (root / "link").symlink_to(outside)
    (root / "linked-log").mkdir()
    (root / "linked-log" / "log.jsonl").symlink_to(outside / "log.jsonl")
    with pytest.raises(UsageError, match="there is no run"):
        read_run(root, name)
    assert [run.name for run in list_runs(root)] == ["inside"]


def test_a_log_that_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "run", 1)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DataError, match=r"cannot be read \(Permission denied\)"):
        read_run(tmp_path, "run")


def test_the_number_of_runs_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        write_run(tmp_path / f"run-{number}", 1)
    monkeypatch.setattr(run_logs, "MAX_RUNS", 5)
    assert len(list_runs(tmp_path)) == 5
    monkeypatch.setattr(run_logs, "MAX_ENTRIES", 3)
    assert len(list_runs(tmp_path)) == 3
