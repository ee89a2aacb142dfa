"""Warnings of a run: kept for a resumed run, and said by the first process alone."""

import logging
from pathlib import Path

import pytest

from headwise.tasks.run import train
from headwise.tasks.run_notes import warning_once
from tests.tasks.every_task import TEXT
from tests.tasks.tiny import tiny_recipe

WORDS = "text={kind: words, size: 50, shared: true}"
PAIRS = [f"{line}\t{line.upper()}" for line in TEXT]


def test_a_resumed_run_tells_what_it_was_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "mine.tsv").write_text("\n".join(PAIRS) + "\n", encoding="utf-8")
    changes = [f"data.train={tmp_path / 'mine.tsv'}", "data.filter.drop_duplicates=false"]
    run, recipe = tmp_path / "run", tiny_recipe("training.checkpoint_every=1", WORDS)
    stopped = train(recipe, run=run, overrides=[*changes, "training.time_limit=1e-9"])
    (note,) = stopped.notes
    assert "the scores are those of that text" in note
    caplog.clear()
    resumed = train(run / "recipe.yaml", run=run, resume=True, overrides=["training.time_limit=9"])
    assert resumed.notes == (note,)
    assert note in caplog.text
    assert note in (run / "model" / "README.md").read_text(encoding="utf-8")


def test_with_another_test_set_the_note_no_longer_holds(tmp_path: Path) -> None:
    (tmp_path / "mine.tsv").write_text("\n".join(PAIRS) + "\n", encoding="utf-8")
    own = [f"data.{part}={tmp_path / 'mine.tsv'}" for part in ("train", "valid")]
    changes = [*own, "data.filter.drop_duplicates=false"]
    run = tmp_path / "run"
    limits = ["training.checkpoint_every=1", "training.time_limit=1e-9"]
    recipe = tiny_recipe("data.test=[pocket:test]", WORDS)
    started = train(recipe, run=run, overrides=[*changes, *limits])
    assert len(started.notes) == 1
    fixed = ["training.time_limit=9", f"data.test={tmp_path / 'mine.tsv'}"]
    assert train(run / "recipe.yaml", run=run, resume=True, overrides=fixed).notes == ()


@pytest.mark.parametrize(("rank", "said"), [("0", 1), ("1", 0)])
def test_the_first_process_alone_warns(
    rank: str, said: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RANK", rank)
    with warning_once():
        logging.getLogger("headwise.tasks.named_files").warning("a heading")
    assert len(caplog.records) == said
    logging.getLogger("headwise.tasks.named_files").warning("later")
    assert len(caplog.records) == said + 1
