"""A comparison with real runs: two that finish, one that fails; done again, changed, stopped; and
the words of its table."""

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headwise.comparing import recipe_table, run_processes
from headwise.comparing.recipe_table import ComparisonResult, VariantResult, as_markdown
from headwise.comparing.recipes import compare, step_seconds
from headwise.comparing.run_processes import finished_results, last_step
from headwise.comparing.variants import Run, plan_comparison
from headwise.errors import UsageError
from headwise.evaluation.several_seeds import Estimate
from headwise.pocket import sentences
from headwise.storage import write_text
from headwise.tasks.comparison_metrics import ON_VALIDATION, ComparisonMetrics, declared_metric
from headwise.tasks.recipe import write_recipe
from headwise.tasks.translation.comparison_metrics import translation_comparison_metrics
from headwise.training.run_lock import release_lock, take_lock
from tests.tasks.tiny import OVERRIDES, tiny_recipe
from tests.tasks.translation.test_task import Watcher

COMPARISON_METRICS = translation_comparison_metrics(tiny_recipe())
GOOD = "{kind: pocket, split: train, count: 300}"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("comparison")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences in files, which can be taken away."""
    prefix = tmp_path_factory.mktemp("corpus") / "train"
    for language in ("en", "de"):
        lines = "".join(sentence.text(language) + "\n" for sentence in sentences("train", 302))
        write_text(prefix.with_name(f"train.{language}"), lines)
    return prefix


@pytest.fixture(scope="module")
def words(corpus: Path) -> list[str]:
    return [
        "pocket",
        *OVERRIDES,
        "training.steps=4",
        f"data.train={GOOD},{GOOD[:-4]}301}},{corpus}",
    ]


@pytest.fixture(scope="module")
def watched(directory: Path, corpus: Path, words: list[str]) -> tuple[ComparisonResult, Watcher]:
    """The files of the third variant vanish after they were checked, for as long as it runs."""
    watcher, start = Watcher(), run_processes._start

    def take_away(run: Run) -> subprocess.Popen[bytes]:
        if str(corpus) in run.recipe.model_dump_json():
            (corpus.with_name("train.de")).rename(corpus.with_name("away"))
        return start(run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_processes, "_start", take_away)
        result = compare(words, directory=directory, jobs=3, events=watcher)
    corpus.with_name("away").rename(corpus.with_name("train.de"))
    return result, watcher


def test_what_fails_does_not_stop_the_others(
    watched: tuple[ComparisonResult, Watcher], directory: Path, corpus: Path
) -> None:
    result, watcher = watched
    first, second, third = result.variants
    assert first.seeds == second.seeds == (1,)
    assert third.seeds == ()
    assert str(corpus) in third.failures[0]
    assert result.failed
    assert any("failed" in note for note in watcher.notes)
    assert first.parameters == second.parameters
    assert first.step_seconds is not None
    assert first.sentences_per_second is not None
    assert second.differences["bleu"].p_value is not None
    assert "failed" in as_markdown(result)
    saved = json.loads((directory / "comparison.json").read_text(encoding="utf-8"))
    assert saved["variants"][0]["quality"]["bleu"]["value"] == first.quality["bleu"].value
    assert len(saved["curves"][f"{first.name} · 1"]) == 1
    label, done, total = watcher.counts[-1]
    assert "3/3 runs done" in label
    assert done == total == 12


def test_a_finished_run_is_not_repeated(
    watched: tuple[ComparisonResult, Watcher],
    directory: Path,
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = []

    def start(run: Any) -> subprocess.Popen[bytes]:
        started.append(run.variant)
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])

    monkeypatch.setattr(run_processes, "_start", start)
    again = compare(words, directory=directory)
    assert started == [watched[0].variants[2].name]
    assert again.variants[0].quality == watched[0].variants[0].quality


def test_what_another_process_trains_is_waited_for(
    watched: tuple[ComparisonResult, Watcher],
    directory: Path,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A killed comparison leaves a run that trains on. It is let finish, and one that was only
    stopped is taken over."""
    norms, events, started = (
        words[:-1] + [f"data.train={GOOD}", "model.norm.kind=layer,rms"],
        Watcher(),
        [],
    )
    runs = plan_comparison(norms, directory=tmp_path)
    for run in runs:
        run.directory.mkdir(parents=True)
    locks = {run.label: take_lock(run.directory) for run in runs}

    def finish(run: Run) -> None:
        shutil.copytree(watched_runs[0].directory / "translations", run.directory / "translations")
        shutil.copytree(watched_runs[0].directory / "model", run.directory / "model")
        write_text(run.directory / "model" / "recipe.yaml", write_recipe(run.recipe))

    def start(run: Run) -> subprocess.Popen[bytes]:
        started.append(run.label)
        if len(started) == 1:  # beaten to it: someone took the lock before
            locks["late"] = take_lock(run.directory)
            beaten.append(subprocess.Popen([sys.executable, "-c", "raise SystemExit(2)"]))
            return beaten[0]
        finish(run)
        return subprocess.Popen([sys.executable, "-c", ""])

    def wait(seconds: float) -> None:
        """Each round of waiting, something happens elsewhere."""
        rounds.append(seconds)
        if len(rounds) == 2:
            finish(runs[0])
            release_lock(locks[runs[0].label])
        elif len(rounds) == 4:
            release_lock(locks[runs[1].label])
        elif beaten and beaten[0].poll() is not None:
            ended.append(len(rounds))
            # It was seen to end while the lock was held, however slow the machine is.
            if len(ended) > 2:
                release_lock(locks.pop("late", None))
        time_sleep(0.05)

    rounds, ended, beaten = list[float](), list[int](), list[subprocess.Popen[bytes]]()
    watched_runs, time_sleep = plan_comparison(words, directory=directory), time.sleep
    monkeypatch.setattr(run_processes, "_start", start)
    monkeypatch.setattr(run_processes.time, "sleep", wait)
    result = compare(norms, directory=tmp_path, events=events)
    assert not result.failed
    assert started == [runs[1].label, runs[1].label]
    assert [
        note for note in events.notes if "another process" in note and "waiting for it" in note
    ] == events.notes
    assert len(events.notes) == 2


def test_another_recipe_is_refused_with_what_differs(
    watched: tuple[ComparisonResult, Watcher], directory: Path, words: list[str]
) -> None:
    with pytest.raises(
        UsageError,
        match=r"(?s)a comparison with other settings.*model.dim: 16 → 32.*another --directory",
    ):
        compare([*words, "model.dim=32"], directory=directory)


def test_a_run_counts_as_finished_with_its_own_recipe_only(
    watched: tuple[ComparisonResult, Watcher], directory: Path, words: list[str]
) -> None:
    run = plan_comparison(words, directory=directory)[0]
    assert finished_results(run) is not None
    longer = plan_comparison([*words, "training.steps=5"], directory=directory)[0]
    assert finished_results(longer) is None
    assert last_step(run.directory / "log.jsonl") == 4
    assert last_step(directory / "nowhere") == 0


@pytest.mark.prove
def test_a_signal_is_passed_on_and_the_same_command_goes_on(tmp_path: Path) -> None:
    words = ["pocket", *OVERRIDES, "training.steps=3000", "model.norm.kind=layer,rms"]
    command = [sys.executable, "-m", "headwise", "compare", *words, "--directory", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    log = tmp_path / "runs" / "layer" / "seed-1" / "log.jsonl"
    while last_step(log) < 20:
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 143
    assert (tmp_path / "runs" / "layer" / "seed-1" / "LATEST").exists()
    steps = last_step(log)
    result = compare(
        [*words[:-2], f"training.steps={steps + 8}", words[-1]], directory=tmp_path / "other"
    )
    assert not result.failed


def test_time_per_step_leaves_out_the_first_line() -> None:
    lines: list[dict[str, Any]] = [
        {"kind": "train", "step": 2, "target_tokens": 200, "tokens_per_second": 1.0},
        {"kind": "valid", "step": 2, "loss": 5.0},
        {"kind": "train", "step": 6, "target_tokens": 400, "tokens_per_second": 50.0},
    ]
    assert step_seconds(lines) == 2.0
    assert step_seconds(lines[:1]) == 100.0
    assert step_seconds([]) is None


def test_only_a_significant_difference_is_called_one() -> None:
    def verdict(value: float, p_value: float) -> str:
        found = Estimate(value, value - 1, value + 1, p_value)
        return VariantResult(
            "x", (1,), {"bleu": found}, {}, {"bleu": found}, None, None, None, None, None
        ).verdict(declared_metric(tiny_recipe(), "bleu"))

    assert verdict(0.4, 0.2) == "no significant difference (p = 0.20)"
    assert verdict(0.9, 0.03) == "better (p = 0.030)"
    assert verdict(-0.9, 0.03) == "worse (p = 0.030)"
    assert verdict(-0.9, 1e-120) == "worse (p < 0.001)"
    assert verdict(-1e-9, 0.0) == "no difference"


def test_notes_are_about_what_was_measured_only() -> None:
    def variant(name: str, *, seeds: tuple[int, ...], **more: Any) -> VariantResult:
        quality = {"bleu": Estimate(30.0, 29.0, 31.0)} if seeds else {}
        return VariantResult(
            name,
            seeds,
            quality,
            {},
            more.pop("differences", {}),
            None,
            None,
            None,
            None,
            None,
            **more,
        )

    def remarks(*variants: VariantResult) -> str:
        return "\n".join(
            ComparisonResult(
                Path("x"), variants, "tok:13a", 2, {}, {}, COMPARISON_METRICS
            ).remarks()
        )

    lost = [variant(name, seeds=(), failures=("seed 1: no", "seed 2: no")) for name in ("a", "b")]
    assert remarks(*lost).splitlines() == [
        f"{name} failed: seed {seed}: no" for name in ("a", "b") for seed in (1, 2)
    ]
    one = remarks(variant("a", seeds=(1,)), lost[1])
    assert "Differences" not in one
    assert "tok:13a\nOne seed: intervals" in one
    both = remarks(
        variant("a", seeds=(1, 2)),
        variant("b", seeds=(1, 2), differences={"bleu": Estimate(1, 0, 2, 0.1)}),
    )
    assert "Differences are from 'a'. tok:13a\nIntervals cover the test set and 2 seeds" in both
    assert "2 runs shared the machine" in both


def test_notes_name_the_data_of_the_scores_and_one_seed_is_no_several() -> None:
    cut = {"bleu": Estimate(99.0, 95.0, 100.0, is_cut=True)}
    one = VariantResult("a", (1,), cut, {}, {}, None, None, None, None, None)

    def remarks(metrics: ComparisonMetrics) -> str:
        return "\n".join(ComparisonResult(Path("x"), (one,), "", 1, {}, {}, metrics).remarks())

    tested, validated = (
        remarks(COMPARISON_METRICS),
        remarks(replace(COMPARISON_METRICS, remark=ON_VALIDATION)),
    )
    assert "intervals cover the test set only" in tested
    assert "where scores end: the test set is too small" in tested
    assert "1 seeds" not in tested
    assert "intervals cover the validation set only" in validated
    assert "the validation set is too small" in validated
    assert "There is no test set" in validated


def test_columns_without_a_number_are_left_out() -> None:
    """n-grams have neither steps nor a loss of their own."""
    counted = VariantResult("a", (1,), {}, {}, {}, None, 7, None, 1.0, None)
    trained = replace(counted, valid_loss=2.0, step_seconds=0.5)
    for variants, present in (((counted,), False), ((counted, trained), True)):
        result = ComparisonResult(Path("x"), variants, "", 1, {}, {}, COMPARISON_METRICS)
        assert ("valid loss" in result.headings()) is present
        assert ("ms/step" in result.headings()) is present
        assert {len(row) for row in result.rows()} == {len(result.headings())}


def test_the_reason_is_that_of_this_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is written on: what an earlier attempt complained of is not why this one ended."""
    words = ["pocket", *OVERRIDES, "model.norm.kind=layer,rms"]
    for run in plan_comparison(words, directory=tmp_path):
        run.log_file.parent.mkdir(parents=True)
        write_text(run.log_file, "headwise: error: text.size is 300\n")

    def start(run: Run) -> subprocess.Popen[bytes]:
        with run.log_file.open("ab") as log:
            if run.variant == "rms":
                log.write(b"headwise: error: the disk is full\n")
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])

    monkeypatch.setattr(run_processes, "_start", start)
    result = compare(words, directory=tmp_path, jobs=2)
    assert [variant.failures for variant in result.variants] == [
        ("seed 1: it said nothing",),
        ("seed 1: the disk is full",),
    ]


@pytest.mark.parametrize(
    ("number", "shown"),
    [(-0.04, "+0.0"), (-0.0, "+0.0"), (0.04, "+0.0"), (-0.06, "-0.1"), (1.25, "+1.2")],
)
def test_a_difference_of_nothing_has_no_minus(number: float, shown: str) -> None:
    assert recipe_table._signed(number) == shown
