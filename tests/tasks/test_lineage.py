"""The lineage: one table for all, going on, and what is refused."""

import json
from pathlib import Path

import pytest

from headwise.errors import UsageError
from headwise.explorer.lineage_plots import draw_lineage
from headwise.tasks.lineage import compare_lineage

SMALL = (
    "data.train=pocket:train:60",
    "data.valid=pocket:valid:20",
    "data.test=pocket:test:30",
    "training.steps=2",
    "training.schedule.warmup=1",
    "training.batch_tokens=128",
    "training.device=cpu",
)

RUNGS = ("add-one 3-gram", "NNLM", "LSTM", "GPT")


def test_every_rung_stands_in_the_table_and_is_taken_again(tmp_path: Path) -> None:
    lineage = compare_lineage(directory=tmp_path, overrides=SMALL, rungs=RUNGS)
    assert [rung.name for rung in lineage.rungs] == list(RUNGS)
    assert all(rung.perplexity is None or rung.perplexity > 1 for rung in lineage.rungs)
    assert all(0 <= rung.told_apart <= 1 and len(rung.next_words) == 3 for rung in lineage.rungs)
    assert len(lineage.rows()[0]) == len(lineage.headings())
    assert "2 updates of 128 tokens" in (tmp_path / "lineage.md").read_text(encoding="utf-8")
    assert len(json.loads((tmp_path / "lineage.json").read_text(encoding="utf-8"))["rungs"]) == len(RUNGS)
    assert draw_lineage(lineage)[0].stat().st_size > 1000
    weights = tmp_path / "runs" / "gpt" / "model" / "weights.safetensors"
    written = weights.stat().st_mtime_ns
    again = compare_lineage(directory=tmp_path, overrides=SMALL, rungs=RUNGS)
    assert weights.stat().st_mtime_ns == written
    assert [rung.perplexity for rung in again.rungs] == [rung.perplexity for rung in lineage.rungs]
    with pytest.raises(UsageError, match="holds a comparison with other settings"):
        compare_lineage(directory=tmp_path, overrides=[*SMALL, "training.seed=2"], rungs=RUNGS)


@pytest.mark.parametrize(
    ("overrides", "rungs", "message"),
    [
        (["model.dim=3"], (), "would be said for all models"),
        (["data.test=null"], (), r"data\.test is empty"),
        ([], ["ELIZA"], "'ELIZA' is no rung of the lineage"),
    ],
)
def test_what_is_refused(overrides: list[str], rungs: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        compare_lineage(directory=tmp_path / "new", overrides=overrides, rungs=rungs)
    assert not (tmp_path / "new").exists()
