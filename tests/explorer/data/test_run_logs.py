"""Logs of trainings: listed, read from where one stopped, and nothing outside the directory."""

import json
import os
import time
from pathlib import Path

import pytest

from headwise.errors import DataError, UsageError
from headwise.explorer.data import run_logs, untrusted_files
from headwise.explorer.data.run_logs import MAX_LINES, list_runs, read_run, thin


def write_run(path: Path, *steps: int, model: bool = False, extra: str = "") -> Path:
    path.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"kind": "train", "step": step, "loss": 10 / step, "note": "x"}) + "\n"
        for step in steps
    ]
    (path / "log.jsonl").write_text("".join(lines) + extra, encoding="utf-8")
    if model:
        (path / "model").mkdir()
        (path / "model" / "MANIFEST.json").write_text("{}", encoding="utf-8")
        results = {
            "steps": 3,
            "test": {"bleu": {"value": 12.5}, "seconds": 0.1},
            "valid": {"loss": float("nan")},
        }
        (path / "model" / "results.json").write_text(json.dumps(results), encoding="utf-8")
    return path


def test_runs_are_listed_newest_first_with_what_they_reached(tmp_path: Path) -> None:
    write_run(tmp_path / "old", 1, model=True)
    newer = write_run(tmp_path / "deep" / "er" / "new", 1, 2)
    (newer / "recipe.yaml").write_text(
        "task: language_modeling\nmodel: {kind: lstm}\n", encoding="utf-8"
    )
    write_run(tmp_path / "a" / "b" / "c" / "too-deep", 1)
    (tmp_path / "old" / "recipe.yaml").write_text("model: [broken", encoding="utf-8")
    os.utime(tmp_path / "old" / "log.jsonl", (1, 1))
    first, second = list_runs(tmp_path)
    assert (first.name, first.task, first.model, first.finished) == (
        "deep/er/new",
        "language_modeling",
        "lstm",
        False,
    )
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
    lines = [
        {"kind": "valid" if step % 100 == 0 else "train", "step": step}
        for step in range(5 * MAX_LINES)
    ]
    kept = thin(lines)
    assert sum(line["kind"] == "train" for line in kept) <= MAX_LINES
    assert sum(line["kind"] == "valid" for line in kept) == 100
    assert kept[-1] == lines[-1]
    assert [line["step"] for line in kept] == sorted(line["step"] for line in kept)


@pytest.mark.parametrize(
    "name", ["../outside", "/etc", "link", "in\0side", "x" * 4000, "linked-log", "nothing"]
)
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

    monkeypatch.setattr(untrusted_files.os, "open", refuse)
    with pytest.raises(DataError, match=r"cannot be read \(Permission denied\)"):
        read_run(tmp_path, "run")


def test_the_number_of_runs_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        write_run(tmp_path / f"run-{number}", 1)
    monkeypatch.setattr(run_logs, "MAX_RUNS", 5)
    assert len(list_runs(tmp_path)) == 5
    monkeypatch.setattr(run_logs, "MAX_ENTRIES", 3)
    assert len(list_runs(tmp_path)) == 3


HUGE = "1" + "0" * 400


def test_one_bad_run_leaves_the_others_in_the_list(tmp_path: Path) -> None:
    """Each of these once blocked the list or ended it."""
    write_run(tmp_path / "good", 1, model=True)
    os.mkfifo(write_run(tmp_path / "pipe", 1) / "recipe.yaml")
    os.mkfifo(write_run(tmp_path / "pipes", 1, model=True) / "attention.json")
    (tmp_path / "log-is-pipe").mkdir()
    os.mkfifo(tmp_path / "log-is-pipe" / "log.jsonl")
    (write_run(tmp_path / "huge", 1, model=True) / "model" / "results.json").write_text(
        f'{{"steps": {HUGE}, "a\\ud800": 2}}', encoding="utf-8"
    )
    (write_run(tmp_path / "half", 1) / "recipe.yaml").write_text(
        'task: "\\uD800"\n', encoding="utf-8"
    )
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.makedirs(os.fsencode(tmp_path) + b"/by\xfftes")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/by\xfftes/log.jsonl")).write_text(
        "", encoding="utf-8"
    )
    found = {run.name: run for run in list_runs(tmp_path)}
    assert sorted(found) == ["good", "half", "huge", "pipe", "pipes"]
    assert (found["huge"].scores, found["half"].task, found["pipe"].task) == (
        {"a?": 2.0},
        "?",
        None,
    )
    json.dumps(
        [run.as_dict() for run in found.values()], ensure_ascii=False, allow_nan=False
    ).encode("utf-8")


def test_a_run_that_goes_while_it_is_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "here", 1)
    monkeypatch.setattr(run_logs, "_find", lambda root: [root / "here", root / "gone"])
    assert [run.name for run in list_runs(tmp_path)] == ["here"]


def test_files_that_are_links_out_of_the_directory_are_not_read(tmp_path: Path) -> None:
    outside = write_run(tmp_path / "outside", 1, model=True)
    (outside / "recipe.yaml").write_text("task: secret\n", encoding="utf-8")
    inside = write_run(tmp_path / "root" / "run", 1)
    (inside / "recipe.yaml").symlink_to(outside / "recipe.yaml")
    (inside / "model").mkdir()
    for name in ("results.json", "MANIFEST.json"):
        (inside / "model" / name).symlink_to(outside / "model" / name)
    (run,) = list_runs(tmp_path / "root")
    assert (run.task, run.scores, run.finished) == (None, {}, False)
    assert not read_run(tmp_path / "root", "run").finished


def test_lines_that_hold_anything(tmp_path: Path) -> None:
    lines = [
        f'{{"kind": "train", "step": {HUGE}}}',
        f'{{"kind": "train", "step": 1, "loss": {HUGE}, "a\\ud800": 1e999, "b\\ud800": 2}}',
        '{"kind": "\\ud800", "step": 2}',
        '{"kind": 5, "step": 3}',
        '{"kind": "train", "step": true}',
    ]
    write_run(tmp_path / "odd", extra="\n".join(lines) + "\n")
    found = read_run(tmp_path, "odd").lines
    kinds = [
        {"kind": "train", "step": 1, "b?": 2},
        {"kind": "?", "step": 2},
        {"kind": "other", "step": 3},
    ]
    assert found == kinds


def test_a_line_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_logs, "MAX_BYTES", 500)
    # Its end would be a line of its own, if it were read by itself.
    long = (
        json.dumps({"kind": "train", "step": 2, "note": "x" * 1801})
        + '{"kind": "train", "step": 7}\n'
    )
    write_run(tmp_path / "long", 1, extra=long + '{"kind": "train", "step": 3}\n')
    steps, offset, more = [], 0, True
    while more:
        part = read_run(tmp_path, "long", after=offset)
        steps += [line["step"] for line in part.lines]
        assert part.offset > offset
        offset, more = part.offset, part.more
    assert steps == [1, 3]


def test_any_number_of_kinds_is_thinned_at_once() -> None:
    lines = [{"kind": str(number), "step": number} for number in range(50_000)]
    start = time.perf_counter()
    assert thin(lines) == lines[: run_logs.MAX_KINDS]
    assert time.perf_counter() - start < 1


def test_recipes_are_read_for_a_while_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (write_run(tmp_path / "run", 1) / "recipe.yaml").write_text(
        "task: translation\n", encoding="utf-8"
    )
    monkeypatch.setattr(run_logs, "RECIPE_SECONDS", -1.0)
    assert list_runs(tmp_path)[0].task is None
    monkeypatch.setattr(run_logs, "RECIPE_SECONDS", 2.0)
    assert list_runs(tmp_path)[0].task == "translation"
