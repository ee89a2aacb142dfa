"""Translators that learnt in different ways, side by side: rows, significance, what is refused."""

import json
from pathlib import Path

import pytest

from headwise.cli.main import main
from headwise.comparing.learning import compare_learning, describe_learning
from headwise.comparing.learning_request import LearningRequest
from headwise.comparing.learning_table import LearningComparison
from headwise.data.pairs.preparation import read_part
from headwise.errors import UsageError
from headwise.evaluation.translation import score_translations
from headwise.language import use_language
from headwise.tasks.translation.translator import Translator
from tests.tasks.tiny import tiny_recipe, train_tiny

SAMPLED = (
    "training.objective={kind: scheduled_sampling, label_smoothing: 0.1}",
    "training.steps=3",
)


@pytest.fixture(name="runs", scope="module")
def _runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learning")
    train_tiny(folder / "forced")
    train_tiny(folder / "sampled", SAMPLED)
    return folder


@pytest.fixture(name="result", scope="module")
def _result(runs: Path) -> LearningComparison:
    request = LearningRequest((runs / "forced", runs / "sampled"), device="cpu")
    return compare_learning(request)


def test_each_model_has_a_row_and_the_first_is_the_baseline(result: LearningComparison) -> None:
    first, second = result.rows
    assert (first.model, second.model) == ("forced", "sampled")
    assert first.difference is None
    assert second.difference is not None
    assert second.difference.baseline == pytest.approx(first.greedy.value)
    assert second.difference.difference == pytest.approx(second.greedy.value - first.greedy.value)
    assert second.updates == 3
    assert second.objective == "scheduled_sampling, mixing passes"
    assert result.num_sentences == 13


def test_greedy_scores_are_those_of_the_translations(
    result: LearningComparison, runs: Path
) -> None:
    translator = Translator.load(runs / "forced", device="cpu")
    pairs = list(read_part(tiny_recipe().data, "test"))
    texts = translator([pair.source for pair in pairs], translator.settings(["kind=greedy"]))
    scores = score_translations(
        [one.text for one in texts], [pair.target for pair in pairs], num_resamples=0
    )
    assert result.rows[0].greedy.value == pytest.approx(scores.bleu.value)


def test_the_table_in_both_languages_and_as_json(result: LearningComparison) -> None:
    for language in ("en", "zh"):
        use_language(language)
        cells = result.cells()
        assert {len(row) for row in cells} == {len(result.headings())}
        assert cells[0][3] == "", "the baseline differs from nothing"
        assert len(result.remarks()) == 4
    json.dumps(result.as_dict())


def test_what_is_refused(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    for words, said in (
        (["forced"], "two models or more"),
        (["forced", "forced"], "given twice"),
        (["forced", "sampled", "--plot", "x.png"], "does not take --plot"),
        (["forced", "sampled", "--decoding", "greedy"], "does not take --decoding"),
        (["forced", "sampled", "--directory", "x"], "does not take --directory"),
    ):
        assert main(["compare", "learning", *words]) == 2, words
        assert said in capsys.readouterr().err
    assert main(["compare", "learning", "forced", "nowhere"]) == 3
    assert not Path("x").exists()


def test_from_the_command_line(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "learning", str(runs / "forced"), str(runs / "sampled"), "--device", "cpu"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert "after a wrong word" in told.replace("\n", " ")
    assert "scheduled_sampling" in told
    assert main([*words, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 2


def test_the_words_for_a_way_of_learning() -> None:
    assert describe_learning(tiny_recipe()) == "cross_entropy"
    rewarded = tiny_recipe(
        "training.objective={kind: reinforce, baseline: greedy_output}",
        "model.start_from=runs/teacher",
    )
    expected = "reinforce, baseline greedy_output, reward sentence_bleu, from teacher"
    assert describe_learning(rewarded) == expected


def test_another_direction_is_refused(runs: Path, tmp_path: Path) -> None:
    other = train_tiny(tmp_path / "back", ("data.source=de", "data.target=en"))
    assert other is not None
    with pytest.raises(UsageError, match="same two languages"):
        compare_learning(LearningRequest((runs / "forced", tmp_path / "back"), device="cpu"))
