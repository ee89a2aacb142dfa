"""The lineage: one table for all, going on, and what is refused."""

import json
from pathlib import Path

import pytest

from headwise.comparing.lineage import compare_lineage
from headwise.comparing.lineage_table import Lineage, LineageModel, Questions
from headwise.errors import UsageError
from headwise.explorer.pictures.lineage_plots import draw_lineage, make_figure
from headwise.tasks.events import Silence

SMALL = (
    "data.train=pocket:train:60",
    "data.valid=pocket:valid:20",
    "data.test=pocket:test:30",
    "training.steps=2",
    "training.schedule.warmup=1",
    "training.batch_tokens=128",
    "training.device=cpu",
)

MODELS = ("add-one 3-gram", "NNLM", "LSTM", "GPT")


def test_every_rung_stands_in_the_table_and_is_taken_again(tmp_path: Path) -> None:
    lineage = compare_lineage(directory=tmp_path, overrides=SMALL, models=MODELS)
    assert [model.name for model in lineage.models] == list(MODELS)
    assert all(model.perplexity is None or model.perplexity > 1 for model in lineage.models)
    assert all(
        0 <= model.told_apart <= 1 and len(model.next_words) == 3 for model in lineage.models
    )
    assert len(lineage.rows()[0]) == len(lineage.headings())
    assert "2 updates of 128 tokens" in (tmp_path / "lineage.md").read_text(encoding="utf-8")
    assert len(json.loads((tmp_path / "lineage.json").read_text(encoding="utf-8"))["rungs"]) == len(
        MODELS
    )
    assert all(model.training_seconds > 0 for model in lineage.models)
    assert draw_lineage(lineage)[0].stat().st_size > 1000
    weights = tmp_path / "runs" / "gpt" / "model" / "weights.safetensors"
    written = weights.stat().st_mtime_ns
    again = compare_lineage(directory=tmp_path, overrides=SMALL, models=MODELS)
    assert weights.stat().st_mtime_ns == written
    assert [model.perplexity for model in again.models] == [
        model.perplexity for model in lineage.models
    ]
    with pytest.raises(UsageError, match="holds a comparison with other settings"):
        compare_lineage(directory=tmp_path, overrides=[*SMALL, "training.seed=2"], models=MODELS)


class _Notes(Silence):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


CHINESE = ["判断这个词的词性。", "他看了这本书的封面。", "我们今天去学校上课。", "这本书很有意思。"]


def _write_chinese(path: Path, *, times: int) -> list[str]:
    path.write_text("\n".join(CHINESE * times) + "\n", encoding="utf-8")
    parts = ("train", "valid", "test")
    return [
        "text={kind: characters}",
        "data.language=zh",
        *(f"data.{part}={path}" for part in parts),
    ]


def test_a_text_that_changed_is_learnt_again(tmp_path: Path) -> None:
    """The files have the same names: what they hold is compared."""
    overrides, watcher = _write_chinese(tmp_path / "text.txt", times=3), _Notes()
    models = ("add-one 3-gram", "Katz 3-gram")

    def perplexities() -> list[float | None]:
        found = compare_lineage(
            directory=tmp_path / "runs", overrides=overrides, models=models, events=watcher
        )
        return [model.perplexity for model in found.models]

    before = perplexities()
    assert perplexities() == before
    assert not any("trained again" in note for note in watcher.notes)
    _write_chinese(tmp_path / "text.txt", times=9)
    assert perplexities() != before
    assert any(
        "is not the one that" in note and "all models are trained again" in note
        for note in watcher.notes
    )
    (tmp_path / "runs" / "text.json").unlink()  # a comparison that did not write down its text
    compare_lineage(directory=tmp_path / "runs", overrides=overrides, models=models, events=watcher)
    assert sum("trained again" in note for note in watcher.notes) == 2


def test_chinese_without_spaces_is_asked_after_half_a_line(tmp_path: Path) -> None:
    overrides = _write_chinese(tmp_path / "text.txt", times=3)
    lineage = compare_lineage(
        directory=tmp_path / "runs", overrides=overrides, models=["Kneser-Ney 5-gram"]
    )
    assert lineage.questions == Questions("判断这个词的词性。", "判断这词个的词性。", "判断这个")
    (model,) = lineage.models
    assert model.next_words[0] == "词"
    assert (model.told_apart, model.preferred) == (1.0, True)
    mine = compare_lineage(
        directory=tmp_path / "runs",
        overrides=overrides,
        models=["Kneser-Ney 5-gram"],
        sentences=("这本书", "书本这"),
        beginning="我们今天____",
    )
    assert mine.questions == Questions("这本书", "书本这", "我们今天")
    assert mine.models[0].next_words[0] == "去"
    assert "'这本书' before '书本这': Kneser-Ney 5-gram" in (
        tmp_path / "runs" / "lineage.md"
    ).read_text(encoding="utf-8")


def test_numbers_of_the_picture_stand_inside_it(tmp_path: Path) -> None:
    perplexities, seconds = (None, 14.7, 12.1, 123456.7), (0.0, 0.031, 1234.5, 60.0)
    models = tuple(
        LineageModel(
            f"model {number}", one, 5, time, None, 1.0, 0.5, preferred=False, next_words=("a",)
        )
        for number, (one, time) in enumerate(zip(perplexities, seconds, strict=True))
    )
    figure = make_figure(Lineage(tmp_path, {}, "budget", Questions("a b", "b a", "a"), models))
    figure.draw_without_rendering()
    for axes in figure.axes:
        frame = axes.get_window_extent()
        assert len(axes.texts) == len(models)
        assert len(axes.lines) == 3
        for text in axes.texts:
            box = text.get_window_extent()
            assert frame.x0 < box.x0 < box.x1 < frame.x1
            assert frame.y0 < box.y0 < box.y1 < frame.y1


@pytest.mark.parametrize(
    ("overrides", "models", "message"),
    [
        (["model.dim=3"], (), "model.dim=3 cannot be set here"),
        (["data.test=null"], (), r"data\.test is empty"),
        ([], ["ELIZA"], "'ELIZA' is no model of the lineage"),
    ],
)
def test_what_is_refused(
    overrides: list[str], models: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        compare_lineage(directory=tmp_path / "new", overrides=overrides, models=models)
    assert not (tmp_path / "new").exists()


def test_a_question_that_cannot_be_asked_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the gap stands before 'sleeps'"):
        compare_lineage(
            directory=tmp_path / "new", overrides=SMALL, models=MODELS, beginning="the ____ sleeps"
        )
    assert not (tmp_path / "new").exists()
