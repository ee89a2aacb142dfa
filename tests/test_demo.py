"""The demo's course with a tiny model in place of the four minutes of training."""

import json
from pathlib import Path
from typing import Any

import pytest

from headwise import demo
from headwise.cli.main import main
from headwise.tasks.translation.recipe import TranslationRecipe
from tests.explorer.examples import ENGLISH, make_trace
from tests.tasks.tiny import tiny_recipe

SMALL = (
    "data.valid=null",
    "data.test=null",
    "training.steps=2",
    "training.schedule.warmup=1",
    "text={size: 1000}",
)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, overrides: list[str]) -> TranslationRecipe:
        assert name == "pocket"
        return tiny_recipe(*overrides, *SMALL)

    monkeypatch.setattr(demo, "load_translation_recipe", load)
    monkeypatch.setattr(demo, "NUM_TEST_SENTENCES", 7)
    monkeypatch.setattr(demo, "NUM_ALIGNED_SENTENCES", 3)


def test_the_whole_course(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "demo"
    assert main(["demo", "--quick", "--run", str(run), "--json"]) == 0
    said = capsys.readouterr()
    result: dict[str, Any] = json.loads(said.out)
    first_screen = said.err.splitlines()[:10]
    for expected in (
        "trains a small Transformer",
        "never seen",
        " min on two CPU cores",
        f"the model in {run}/model",
    ):
        assert any(expected in line for line in first_screen), expected
    assert result["model"] == str(run / "model")
    assert {"bleu", "chrf", "exact_match", "pronoun_accuracy"} <= result["test"].keys() & result[
        "unseen"
    ].keys()
    assert all("pronouns_word_for_word" in result[split] for split in ("test", "unseen"))
    assert 0 < result["alignment"]["scale"]["lowest"] < result["alignment"]["scale"]["straight"] < 1
    assert len(result["translations"]) == 12
    names = {Path(path).name for path in result["pictures"]}
    assert names == {
        "cross-attention.png",
        "self-attention.png",
        "heads.png",
        "pronoun.png",
        "attention.html",
    }
    assert all(Path(path).stat().st_size > 0 for path in result["pictures"])

    assert main(["--lang", "zh", "demo", "--run", str(run)]) == 0
    said = capsys.readouterr()
    assert "使用" in said.err
    assert "接下来可以试试" in said.out
    assert f"headwise translate --model {run / 'model'}" in said.out

    assert main(["--lang", "en", "demo", "--run", str(run), "--pair", "zh-en"]) == 2
    assert "holds a demo of en-de, zh-en was asked for" in capsys.readouterr().err


def test_a_pronoun_is_drawn_where_it_is_a_word_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []
    monkeypatch.setattr(
        demo, "draw_pronoun_picture", lambda traces, path, word, **heads: drawn.append(word)
    )
    apart = [make_trace(("▁因为", "它", "太", adjective, "</s>"), ENGLISH) for adjective in "累宽"]
    within = [make_trace(("▁因为它太", adjective, "</s>"), ENGLISH) for adjective in "累宽"]
    assert demo.draw_pronoun(apart, tmp_path / "a.png", source="zh")
    assert not demo.draw_pronoun(within, tmp_path / "b.png", source="zh")  # a model from before
    assert not demo.draw_pronoun(apart, tmp_path / "c.png", source="de")
    assert drawn == ["它"]


def test_only_a_demo_is_thrown_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "recipe.yaml").write_text(
        "data: {train: [{kind: files, path: my/train}]}\n", encoding="utf-8"
    )
    assert main(["demo", "--fresh", "--run", str(tmp_path)]) == 2
    assert "holds more than a demo" in capsys.readouterr().err
    assert main(["demo", "--run", str(tmp_path)]) == 2
    assert "holds an unfinished run with other settings" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.yaml"]


def test_starting_over_removes_only_what_a_run_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "draw_pictures", lambda translator, directory: ())
    run = tmp_path / "demo"
    for _ in range(2):
        assert main(["demo", "--pair", "zh-en", "--fresh", "--run", str(run), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["steps"] == 2
    (run / "mine.txt").write_text("kept", encoding="utf-8")
    assert main(["demo", "--pair", "zh-en", "--fresh", "--run", str(run)]) == 2
    assert (run / "model").exists()
