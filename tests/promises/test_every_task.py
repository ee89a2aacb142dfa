"""What a run promises, asked of every task in the table: a new task keeps these or does not land.

Word vectors and n-grams are learnt in a single pass: they have no checkpoints, and several
processes are refused with the reason. docs/promises.md shows the same table.
The task `regression` of another package (examples/plugin) is asked the same.
"""

import json
import logging
import re
import shutil
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from headwise.cli.main import main
from headwise.comparing.recipes import summarize
from headwise.comparing.run_processes import Outcome, finished_results
from headwise.comparing.variants import Run
from headwise.errors import DataError, SettingsError, UsageError
from headwise.explorer.data.run_logs import declared_tasks, list_runs
from headwise.inspecting.bundle_summary import summarize_bundle
from headwise.inspecting.description import describe_model
from headwise.language import use_language
from headwise.tasks.events import Silence
from headwise.tasks.planner import plan_recipe
from headwise.tasks.recipe import load_recipe, recipe_from, write_recipe
from headwise.tasks.result_rows import EVERY_RUN, result_rows
from headwise.tasks.run import check_run, train
from headwise.tasks.table import find_entry, find_task
from headwise.tasks.task import Learner
from headwise.training.checkpoints import DiskFullError
from headwise.training.progress import Progress
from tests.plugins.regression import WORD as ADDED
from tests.promises.recipes import (
    COUNTED,
    EVERY,
    STEPPED,
    FinishedRuns,
    is_single_pass,
    make_recipe,
    weights_of_run,
)


@pytest.mark.parametrize("name", EVERY)
def test_check_tells_parameters_and_memory_and_writes_nothing(name: str, tmp_path: Path) -> None:
    summary = check_run(make_recipe(name, tmp_path), directory=tmp_path / "scratch")
    assert summary.results["parameters"] > 0
    assert summary.results["expected_memory_mib"] >= 1
    assert summary.results["expected_seconds"] >= 0
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", EVERY)
def test_a_plan_says_memory_time_and_disk(name: str, tmp_path: Path) -> None:
    recipe = make_recipe(name, tmp_path)
    plan = plan_recipe(recipe, device=None if is_single_pass(recipe) else "h200")
    found = plan.as_dict()
    assert found["parameters"] > 0
    assert found["memory"]["total"] > 0
    assert found["duration_seconds"] >= 0
    assert found["disk"] > 0
    assert found["fits"]
    assert all(len(row) == len(headings) for _, headings, rows in plan.tables() for row in rows)
    assert (tmp_path / "run").exists() is False


@pytest.mark.parametrize("name", EVERY)
def test_a_run_leaves_log_recipe_bundle_and_card(name: str, finished: FinishedRuns) -> None:
    found = finished.of(name)
    recipe, run, summary = found.recipe, found.run, found.summary
    assert load_recipe(run / "recipe.yaml") == recipe
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    assert lines
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# ")
    assert "## Results" in card
    assert "## Limits" in card
    assert "## Use" in card
    assert "Trained on " in card
    assert "data named above" not in card
    data = recipe.model_dump(mode="json")["data"]
    measured = data.get("valid") or data.get("test")
    assert ("Measured on " if measured else "Not measured: ") in card
    assert summary.results["training_seconds"] >= 0
    assert summarize_bundle(run / "model")
    assert main(["doctor", str(run)]) == 0


@pytest.mark.parametrize("name", EVERY)
def test_whatever_a_run_reports_has_a_name_in_both_languages(
    name: str, finished: FinishedRuns
) -> None:
    """In `results.json` and in the log: by the task's own declaration, in no list elsewhere."""
    recipe, run = finished.of(name).recipe, finished.of(name).run
    results = finished.of(name).summary.results
    declared = {**EVERY_RUN, **recipe.results}
    declared |= {f"valid_{key}": metric for key, metric in recipe.metrics.items()}
    plain = {key for key, value in results.items() if not isinstance(value, dict)}
    assert plain <= declared.keys()
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    validations = [line for line in lines if line["kind"] == "valid"]
    measured = {key for line in validations for key in line} - {"kind", "step", "epoch", "seconds"}
    assert measured <= recipe.metrics.keys()
    if measured:
        assert measured <= recipe.validated_metrics.keys()
        assert all(recipe.metrics[key].better for key in measured)
    entry = find_entry(recipe.task)
    assert entry is not None
    texts = [entry.name, *(one.title for one in (*recipe.metrics.values(), *declared.values()))]
    assert all(en and zh for en, zh in texts)
    (shown,) = list_runs(run)
    assert declared_tasks([shown])[recipe.task]["title"]["zh"] == entry.name[1]
    use_language("zh")
    for row in result_rows(results, type(recipe)):
        assert not re.search("[a-z]{4}", row[0].replace("torch.compile", "")), "in Chinese"


@pytest.mark.parametrize("name", EVERY)
def test_a_model_is_described(
    name: str, finished: FinishedRuns, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe, run = finished.of(name).recipe, finished.of(name).run
    results = finished.of(name).summary.results
    found = describe_model(run)
    checked = check_run(recipe, directory=tmp_path / "scratch").results
    assert checked["parameters"] == found.parameters
    assert found.task == recipe.task
    assert found.results == results
    if "parameters" in results:
        assert found.parameters == results["parameters"]
    assert sum(part["parameters"] for part in found.as_dict()["parts"]) == found.parameters > 0
    assert main(["describe", str(run)]) == 0
    assert "# Results" in capsys.readouterr().out
    use_language("zh")
    names = "\n".join(row[0] for title, _, rows in found.tables() for row in rows)
    names = names.replace("highway", "").replace("torch.compile", "").replace("text.size", "")
    assert re.findall(".*[a-z]{4}.*", names) == []


@pytest.mark.parametrize("name", EVERY)
def test_a_recipe_is_described_or_the_reason_is_given(name: str, tmp_path: Path) -> None:
    recipe = make_recipe(name, tmp_path)
    file = tmp_path / "mine.yaml"
    file.write_text(write_recipe(recipe), encoding="utf-8")
    if is_single_pass(recipe):
        with pytest.raises(UsageError, match="depends on the text alone"):
            describe_model(file)
    else:
        described = describe_model(file)
        assert described.parameters == plan_recipe(recipe, device="h200").as_dict()["parameters"]
        if name != ADDED:
            assert f"{recipe.model_dump()['text']['size']:,}" in str(described.tables()[0])


@pytest.mark.parametrize("name", EVERY)
def test_models_are_compared_or_the_reason_is_given(name: str, tmp_path: Path) -> None:
    """Two trainings that differ in their seed: what a run kept gives a score and a p-value."""
    recipe = make_recipe(name, tmp_path)
    data = recipe.model_dump(mode="json")
    data["data"] |= {} if name in ("word_vectors", ADDED) else {"test": data["data"]["train"]}
    outcomes = []
    for seed in (1, 2):
        own = recipe_from({**data, "training": {**data["training"], "seed": seed}})
        results = train(own, run=tmp_path / f"run-{seed}").results
        run = Run(f"seed {seed}", seed, own, tmp_path / f"run-{seed}")
        assert finished_results(run) == results
        outcomes.append(Outcome(run, dict(results)))
    found = summarize(outcomes, directory=tmp_path, jobs=1)
    assert all(len(row) == len(found.headings()) for row in found.rows())
    assert not found.failed
    assert all(variant.parameters for variant in found.variants)
    metrics = found.comparison_metrics.metrics
    if not metrics:
        assert "no score to test for significance" in found.remarks()[0]
        return
    first, second = found.variants
    assert [*first.quality] == [metric.key for metric in metrics]
    assert second.differences[metrics[0].key].p_value is not None
    assert second.verdict(metrics[0])


@pytest.mark.parametrize("name", STEPPED)
def test_a_stopped_run_resumes_to_the_same_bits(name: str, tmp_path: Path) -> None:
    whole = make_recipe(name, tmp_path, checkpoint_every=1)
    train(whole, run=tmp_path / "whole")
    stopped = make_recipe(name, tmp_path, checkpoint_every=1, time_limit=1e-9)
    train(stopped, run=tmp_path / "halves")
    train(whole, run=tmp_path / "halves", resume=True)
    assert weights_of_run(tmp_path / "halves") == weights_of_run(tmp_path / "whole")


@pytest.mark.parametrize("name", ["word_vectors", COUNTED])
def test_a_single_pass_cannot_be_resumed_and_says_why(
    name: str, finished: FinishedRuns, tmp_path: Path
) -> None:
    recipe, run = finished.of(name).recipe, finished.of(name).run
    for resume in (False, True):
        with pytest.raises(UsageError, match="has no checkpoint to go on from") as caught:
            train(recipe, run=run, resume=resume)
        assert "--resume" not in str(caught.value)
        with pytest.raises(UsageError, match="has no checkpoint to go on from"):
            check_run(recipe, directory=tmp_path / "data", run=run, resume=resume)


@pytest.mark.parametrize("name", EVERY)
def test_a_bundle_is_saved_before_it_is_measured(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(name, tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no measure today")

    monkeypatch.setattr(type(find_task(recipe)), "measure", fail)
    with pytest.raises(RuntimeError, match="no measure today"):
        train(recipe, run=tmp_path / "run")
    assert summarize_bundle(tmp_path / "run" / "model")


@pytest.mark.parametrize("name", EVERY)
def test_a_missing_file_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    data = make_recipe(name, tmp_path).model_dump(mode="json")
    is_labelled = name in ("classification", "tagging")
    data["data"]["train"] = str(tmp_path / ("nowhere.tsv" if is_labelled else "nowhere.txt"))
    with pytest.raises(DataError, match="nowhere"):
        train(recipe_from(data), run=tmp_path / "a" / "run")
    assert not (tmp_path / "a").exists()


@dataclass(frozen=True)
class RefusedBatches:
    """Data that are refused when the first batch is made."""

    fingerprint = "none"

    def stream(self, cursor: object) -> Iterator[tuple[object, dict[str, int]]]:
        raise DataError("cannot be learnt from", "无法从中学习")
        yield


@pytest.mark.parametrize("place", ["learner", "first batch"])
@pytest.mark.parametrize("name", STEPPED)
def test_a_refusal_before_the_first_update_leaves_nothing_behind(
    name: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(name, tmp_path)
    make_learner = find_task(recipe).learner

    def learner(*given: object, **named: object) -> Learner:
        if place == "learner":
            raise DataError("cannot be learnt from", "无法从中学习")
        return replace(make_learner(*given, **named), batches=RefusedBatches())

    monkeypatch.setattr(type(find_task(recipe)), "learner", lambda task, *a, **b: learner(*a, **b))
    with pytest.raises(DataError, match="cannot be learnt from"):
        train(recipe, run=tmp_path / "a" / "run")
    assert not (tmp_path / "a").exists()


def test_a_run_that_has_begun_to_learn_is_kept_when_it_is_refused(tmp_path: Path) -> None:
    class Refusing(Silence):
        def training(self, progress: Progress) -> None:
            if progress.step > 0:
                raise DataError("no more", "没有了")

    with pytest.raises(DataError, match="no more"):
        train(make_recipe("classification", tmp_path), run=tmp_path / "run", events=Refusing())
    assert (tmp_path / "run" / "recipe.yaml").exists()


def test_a_start_that_fails_keeps_data_that_were_there_before(tmp_path: Path) -> None:
    (tmp_path / "run" / "data").mkdir(parents=True)
    (tmp_path / "run" / "data" / "prepared.json").write_text("{}")
    data = make_recipe("classification", tmp_path).model_dump(mode="json")
    data["data"]["train"] = str(tmp_path / "empty.tsv")
    (tmp_path / "empty.tsv").write_text("")
    with pytest.raises(DataError):
        train(recipe_from(data), run=tmp_path / "run")
    assert (tmp_path / "run" / "data" / "prepared.json").exists()
    assert not (tmp_path / "run" / "recipe.yaml").exists()


@pytest.mark.parametrize("name", STEPPED)
def test_frozen_weights_must_exist(name: str, tmp_path: Path) -> None:
    recipe = make_recipe(name, tmp_path, freeze=["no.such.part.*"])
    with pytest.raises(SettingsError, match="matches no weight"):
        train(recipe, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", STEPPED)
def test_patience_stops_and_the_best_weights_are_kept(name: str, tmp_path: Path) -> None:
    schedule = {"kind": "constant", "peak": 1e-30}
    recipe = make_recipe(name, tmp_path, steps=50, validate_every=1, patience=2, schedule=schedule)
    results = train(recipe, run=tmp_path / "run").results
    assert results["stopped_by"] == "patience"
    assert results["steps"] < 50


@pytest.mark.parametrize("name", EVERY)
def test_memory_that_cannot_suffice_is_refused_before_training(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headwise.tasks.memory_check.available_memory", lambda device: 100)
    recipe = make_recipe(name, tmp_path)
    with pytest.raises(UsageError, match="or start it nevertheless with --anyway"):
        train(recipe, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with caplog.at_level(logging.WARNING):
        train(recipe, run=tmp_path / "run", anyway=True)
    assert "may not fit" in caplog.text


@pytest.mark.parametrize("name", EVERY)
def test_a_full_disk_is_refused_before_training_and_leaves_nothing_behind(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe(name, tmp_path)
    disk = namedtuple("disk", "total used free")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: disk(1, 1, 1000))
        with pytest.raises(DiskFullError, match="has 0 MiB free"):
            check_run(recipe, directory=tmp_path / "scratch", run=tmp_path / "a" / "run")
        with pytest.raises(DiskFullError, match="has 0 MiB free"):
            train(recipe, run=tmp_path / "a" / "run")
    assert not (tmp_path / "a").exists()
