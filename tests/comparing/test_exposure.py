"""What a wrong beginning costs: which tokens are wrong, what is continued, what is refused."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headwise.cli.main import main
from headwise.comparing.exposure import (
    ExposureResult,
    encode_pairs,
    measure_exposure,
)
from headwise.comparing.exposure_request import ExposureRequest
from headwise.comparing.models_in_turn import check_steps
from headwise.data.pairs.parallel_files import Pair
from headwise.errors import DataError, UsageError
from headwise.evaluation.translation import score_translations
from headwise.explorer.pictures.exposure_plots import draw_exposure, make_figure
from headwise.models.parallel.choices import ParallelSettings
from headwise.tasks.translation.token_pair import TokenPair
from headwise.tasks.translation.translator import Translator
from headwise.tasks.translation.wrong_prefix import (
    LIKELY,
    choose_wrong,
    continue_after,
    greedy_settings,
    measure_after_prefixes,
    text_of,
)
from headwise.text.tokenizer import NUM_SPECIAL
from tests.tasks.tiny import tiny_recipe, train_tiny

RECURRENT = ("model={kind: recurrent, dim: 16, layers: 1}",)


@pytest.fixture(name="runs", scope="module")
def _runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train_tiny(folder / "transformer")
    train_tiny(folder / "recurrent", RECURRENT)
    return folder


@pytest.fixture(name="translator", scope="module", params=["transformer", "recurrent"])
def _translator(runs: Path, request: pytest.FixtureRequest) -> Translator:
    return Translator.load(runs / request.param, device="cpu")


@pytest.fixture(name="pairs", scope="module")
def _pairs(translator: Translator) -> list[TokenPair]:
    texts = [("The dog sleeps.", "Der Hund schläft."), ("A cat eats.", "Eine Katze frisst.")] * 3
    return encode_pairs(translator, [Pair(*both, "here", 1) for both in texts], longer_than=1)


@pytest.fixture(name="result", scope="module")
def _result(runs: Path) -> ExposureResult:
    models = (runs / "transformer", runs / "recurrent")
    return measure_exposure(ExposureRequest(models, positions=5, sentences=11, device="cpu"))


def hand_made(targets: list[tuple[int, ...]]) -> list[TokenPair]:
    return [TokenPair((5, 6), target) for target in targets]


def test_frequent_tokens_are_those_of_the_place_without_the_right_one(
    translator: Translator,
) -> None:
    pairs = hand_made([(7, 8, 9), (7, 9, 8), (10, 8, 8), (3, 8, 8)])
    found = [
        choose_wrong(translator, pairs, rule="frequent", count=2, seed=seed) for seed in range(9)
    ]
    assert {wrong[0][0] for wrong in found} == {10}, "unknown words are not chosen"
    assert {wrong[2][0] for wrong in found} == {7}
    assert {wrong[3][0] for wrong in found} == {7, 10}
    assert {wrong[0][1] for wrong in found} == {9}
    assert found[0] == choose_wrong(translator, pairs, rule="frequent", count=2, seed=0)


def test_likely_tokens_are_those_of_the_model(
    translator: Translator, pairs: list[TokenPair]
) -> None:
    wrong = choose_wrong(translator, pairs, rule="likely", count=2, seed=3)
    generator = translator.generator(greedy_settings(translator))
    for pair, (first, second) in zip(pairs, wrong, strict=True):
        scores = list(generator.read([pair.source], (first,)))
        for place, token in enumerate((first, second)):
            ranked = scores[place][0].argsort(descending=True).tolist()
            likely = [one for one in ranked if one >= NUM_SPECIAL]
            right = pair.target[place]
            assert token != right
            assert token in [one for one in likely if one != right][:LIKELY]


def test_one_right_token_everywhere_leaves_no_wrong_one(translator: Translator) -> None:
    pairs = hand_made([(7, 8), (7, 9)])
    with pytest.raises(UsageError, match="same token at place 1"):
        choose_wrong(translator, pairs, rule="frequent", count=1, seed=1)


def test_after_its_own_beginning_a_model_writes_its_own_translation(
    translator: Translator, pairs: list[TokenPair]
) -> None:
    whole = continue_after(translator, pairs, [()] * len(pairs))
    assert any(len(tokens) > 2 for tokens in whole)
    rest = continue_after(translator, pairs, [tokens[:2] for tokens in whole])
    assert rest == [tokens[2:] for tokens in whole]


def test_both_beginnings_are_scored_on_the_same_rest(
    translator: Translator, pairs: list[TokenPair]
) -> None:
    wrong = [(9,)] * len(pairs)
    found = measure_after_prefixes(translator, pairs, wrong)
    references = [text_of(translator, pair.target[1:]) for pair in pairs]
    for scores, prefixes in (
        (found.right, [pair.target[:1] for pair in pairs]),
        (found.wrong, wrong),
    ):
        texts = [text_of(translator, one) for one in continue_after(translator, pairs, prefixes)]
        expected = score_translations(texts, references, language="de")
        assert scores == expected
    assert found.drop == found.right.bleu.value - found.wrong.bleu.value


def test_rows_and_positions(result: ExposureResult) -> None:
    assert [row.model for row in result.rows] == ["transformer", "recurrent"]
    assert [row.num_sentences for row in result.rows] == [11, 11]
    assert result.num_positions == 5
    assert all(row.agreement.agreement[0] == 1 for row in result.rows)
    assert [len(row) for row in result.cells()] == [len(result.headings())] * 2
    assert [len(row) for row in result.position_cells()] == [len(result.position_headings())] * 5
    assert [row[0] for row in result.position_cells()] == ["1", "2", "3", "4", "5"]
    data = json.loads(json.dumps(result.as_dict()))
    assert data["models"][0]["bleu_after_wrong"]["name"] == "BLEU"
    assert len(data["models"][1]["by_position"]) == 5
    assert "11 sentences" in result.remarks()[0]


def test_the_picture_names_every_model(result: ExposureResult, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (legend,) = make_figure(result).legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert [text.split(" ")[0] for text in texts] == ["transformer", "recurrent"]
    draw_exposure(result, tmp_path / "both.svg")
    assert (tmp_path / "both.svg").stat().st_size > 1000


def test_the_command_prints_tables_and_json(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["exposure", str(runs / "recurrent"), "--sentences", "5", "--positions", "2"]
    assert main(asked) == 0
    printed = capsys.readouterr().out
    assert "after a wrong one" in printed
    assert "# by position" in printed
    assert main([*asked, "--json", "--wrong", "likely", "--tokens", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["wrong"], found["tokens"]) == ("likely", 2)


def test_a_model_that_writes_all_words_at_once_is_refused() -> None:
    recipe = tiny_recipe().model_copy(update={"model": ParallelSettings()})
    translator: Any = SimpleNamespace(recipe=recipe)
    with pytest.raises(UsageError, match="runs/p writes all words at once"):
        check_steps(translator, "runs/p")


def test_sentences_that_are_too_short_are_refused(translator: Translator) -> None:
    with pytest.raises(DataError, match="none of the 1 test sentences has a reference of more"):
        encode_pairs(translator, [Pair("Go.", "Los.", "here", 1)], longer_than=50)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": Path("a")}, "--source was given without --reference"),
        ({"tokens": 21}, "--tokens 21 is not usable"),
        ({"positions": 0}, "--positions 0 is not usable"),
    ],
)
def test_what_cannot_be_answered_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ExposureRequest((Path("runs/mine"),), **changes).check()
