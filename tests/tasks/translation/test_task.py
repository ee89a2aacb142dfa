import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import headwise
from headwise.errors import DataError, SettingsError, UsageError
from headwise.tasks.run import check_run, train
from headwise.tasks.translation.training_rows import row_shape
from tests.tasks.tiny import tiny_recipe, train_tiny


def digest(run: Path) -> str:
    return hashlib.sha256((run / "model" / "weights.safetensors").read_bytes()).hexdigest()


class Watcher:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.steps: list[int] = []
        self.counts: list[tuple[str, int, int | None]] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def count(self, label: str, done: int, total: int | None) -> None:
        self.counts.append((label, done, total))

    def share(self, label: str, done: float) -> None: ...

    def training(self, progress: Any) -> None:
        self.steps.append(progress.step)


def test_a_run_leaves_everything_the_design_promises(tiny_run: Path) -> None:
    names = {path.name for path in tiny_run.iterdir()}
    assert {"recipe.yaml", "log.jsonl", "checkpoints", "model", "LATEST", "data"} <= names
    lines = [
        json.loads(line)
        for line in (tiny_run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [line["step"] for line in lines if line["kind"] == "train"] == [2, 4, 6]
    results = json.loads((tiny_run / "model" / "results.json").read_text(encoding="utf-8"))
    assert results["steps"] == 6
    state = json.loads(
        (tiny_run / "checkpoints" / "step-6" / "state.json").read_text(encoding="utf-8")
    )
    assert results["precision"] == state["environment"]["precision"]
    assert f"- number format: {results['precision']}" in (
        tiny_run / "model" / "README.md"
    ).read_text(encoding="utf-8")
    assert results["precision"] in ("fp32", "bf16"), "never auto"
    assert results["test"]["bleu"]["signature"].startswith("nrefs:1")


def test_a_resumed_run_is_the_uninterrupted_one(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stop(Exception):
        pass

    watcher = Watcher()

    def stop(progress: Any) -> None:
        if progress.step >= 5:
            raise Stop

    monkeypatch.setattr(watcher, "training", stop)
    with pytest.raises(Stop):
        train(tiny_recipe(), run=tmp_path / "run", events=watcher)
    assert not (tmp_path / "run" / "model").exists()
    with pytest.raises(UsageError, match="holds a run already; add --resume"):
        train_tiny(tmp_path / "run")
    train(tiny_recipe(), run=tmp_path / "run", resume=True)
    assert digest(tmp_path / "run") == digest(tiny_run)


def test_the_watcher_hears_of_everything(tmp_path: Path) -> None:
    watcher = Watcher()
    summary = headwise.train(
        tiny_recipe("data.valid=null", "training.steps=2"), run=tmp_path / "run", events=watcher
    )
    assert summary.model == tmp_path / "run" / "model"
    assert watcher.steps[-1] == 2
    assert any("300 pairs, vocabulary 500" in note for note in watcher.notes)
    assert watcher.counts[-1] == ("training pairs", 300, None)
    assert "valid" not in summary.results


def test_checking_trains_nothing(tmp_path: Path) -> None:
    watcher = Watcher()
    summary = check_run(
        tiny_recipe("training.device=cpu"), directory=tmp_path / "data", events=watcher
    )
    assert set(summary.results) == {
        "pairs",
        "parameters",
        "expected_memory_mib",
        "expected_seconds",
    }
    assert summary.results["pairs"] == 300
    assert "of training on this machine" in watcher.notes[-1]
    assert summary.model is None


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.train=none/such"], "there is no such.en"),
        (["data.test=none/such"], "there is no such.en"),
        (["text.size=90000"], "text.size is 90,000, but this text has room for"),
        (["data.filter.max_characters=1"], "no pair of data.train is left after filtering"),
        (["data.filter.max_tokens=1"], "no pair of data.train is left after filtering"),
        (["data.target=fr"], "got language 'fr'; the pocket corpus is in en, zh, de"),
        (["training.device=cuda"], "the device cuda was asked for, but PyTorch sees no GPU"),
    ],
)
def test_bad_input_leaves_nothing_behind(
    overrides: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises((DataError, SettingsError, UsageError), match=message):
        train_tiny(tmp_path / "new" / "run", overrides)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(DataError, match=r"there is no such.en"):
        train_tiny(tmp_path / "run", ["data.train=none/such"])
    assert list((tmp_path / "run").iterdir()) == []


def test_a_refused_directory_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(UsageError, match="holds files that are not a run"):
        train_tiny(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_an_unusable_test_set_is_noticed_before_training(tmp_path: Path) -> None:
    for code in ("en", "de"):
        (tmp_path / f"t.{code}").write_text("\n\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"data.test .*t. has no pair that can be used"):
        train_tiny(tmp_path / "run", [f"data.test={tmp_path}/t"])
    assert not (tmp_path / "run").exists()


def test_another_recipe_is_no_continuation(tiny_run: Path) -> None:
    with pytest.raises(UsageError, match=r"training.seed: 1 → 2"):
        train(tiny_recipe("training.seed=2"), run=tiny_run, resume=True)


def test_rows_hold_the_tokens_of_a_batch() -> None:
    class Prepared:
        source_row, target_row, segmentation = 58, 64, None

    prepared: Any = Prepared()
    assert row_shape(tiny_recipe("training.batch_tokens=512"), prepared).rows == 8
    assert row_shape(tiny_recipe("training.batch_tokens=7"), prepared).rows == 1
