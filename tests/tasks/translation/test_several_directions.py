"""One translator of several directions: its data against those of single directions with the same
tag, its run, its use, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from headwise.cli.main import main
from headwise.data.pairs.choices import read_corpus
from headwise.data.pairs.preparation import GivenTokenizers, describe_inputs, prepare_data
from headwise.errors import SettingsError, TrainingStopped, UsageError
from headwise.pocket import sentences
from headwise.tasks.run import train
from headwise.tasks.training_cost import first_batch
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.tasks.translation.evaluation import measure
from headwise.tasks.translation.evaluation_request import Measurement
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.training_rows import batches_for, row_shape
from headwise.tasks.translation.translator import Translator
from headwise.text.tagged_tokenizer import TaggedTokenizer
from tests.promises.recipes import weights_of_run
from tests.promises.stopping import StopAtStep
from tests.tasks.tiny import tiny_recipe

SIX = ("en-de", "de-en", "en-zh", "zh-en", "de-zh", "zh-de")
FEW = (
    "data.train={kind: pocket, split: train, count: 40}",
    "data.valid={kind: pocket, split: valid, count: 3}",
    "data.test={kind: pocket, split: test, count: 3}",
    "text={kind: sentencepiece, size: 400, byte_fallback: false, coverage: 1.0}",
)


def recipe_of(*directions: str, unseen: str = "", more: tuple[str, ...] = ()) -> TranslationRecipe:
    several = f"data.directions=[{', '.join(directions)}]"
    return tiny_recipe(*FEW, several, f"data.zero_shot=[{unseen}]", *more)


@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("several") / "run"
    validating = ("training.validate_every=3", "evaluation.validation_sentences=2")
    train(recipe_of(*SIX[:5], unseen=SIX[5], more=validating), run=run)
    return run


def test_the_pieces_are_those_of_each_direction_with_its_tag(tmp_path: Path) -> None:
    together = recipe_of(*SIX)
    six = prepare_data(together.data, together.text, tmp_path / "six")
    given = GivenTokenizers(six.tokenizers, "the six")
    rows = []
    for direction in SIX:
        source, target = direction.split("-")
        tagged = f"data.train={{kind: pocket, split: train, count: 40, tag: <2{target}>}}"
        changes = (*FEW, tagged, f"data.source={source}", f"data.target={target}")
        single = tiny_recipe(*changes, "data.valid=null", "data.test=null")
        alone = prepare_data(single.data, single.text, tmp_path / direction, given=given)
        rows += [
            (alone.train.source(i).tolist(), alone.train.target(i).tolist())
            for i in range(len(alone.train))
        ]
    found = [
        (six.train.source(i).tolist(), six.train.target(i).tolist()) for i in range(len(six.train))
    ]
    assert len(found) > 6 * 30
    assert found == rows
    assert {six.tokenizers.source.pieces([source[0]])[0] for source, _ in found} == {
        "▁<2en>",
        "▁<2de>",
        "▁<2zh>",
    }
    batch = first_batch(batches_for(together, six, row_shape(together, six)))
    tags = {six.tokenizers.source.encode(f"<2{one}> .")[0] for one in ("en", "de", "zh")}
    assert tags <= set(batch.source.flatten().tolist())


def test_a_direction_is_a_translator_with_the_tag_before_its_sources(run: Path) -> None:
    six = Translator.load(run)
    texts = [one.text("en") for one in sentences("test", 4)]
    loaded = load_translator_bundle(run, several_directions=True)
    plain = replace(loaded, recipe=tiny_recipe("data.target=zh"))
    by_hand = Translator(plain)([f"<2zh> {text}" for text in texts])
    assert [one.text for one in six(texts, to="zh")] == [one.text for one in by_hand]
    assert [one.source for one in six(texts, to="zh")] == texts
    into = six.into("zh", "en")
    assert (into.source_language, into.target_language) == ("en", "zh")
    assert isinstance(into.tokenizers.source, TaggedTokenizer)
    assert into.encode(texts[0]) == six.tokenizers.source.encode(f"<2zh> {texts[0]}")
    assert into.encode(" ") == []
    assert into.into("zh") is into


def test_every_source_language_is_familiar(run: Path) -> None:
    into = Translator.load(run).into("en")
    for language in ("de", "zh"):
        learnt = [one.text(language) for one in sentences("train", 9)]
        assert all(one.warning is None for one in into(learnt))
    (foreign,) = into(["Xyzzy plugh frotz gnusto."])
    assert foreign.warning is not None
    assert "in the de, zh text that the model learned from" in foreign.warning.en


def test_every_direction_is_measured_by_itself(run: Path, tmp_path: Path) -> None:
    results = json.loads((run / "model" / "results.json").read_text("utf-8"))
    test = results["test"]
    assert list(test["directions"]) == list(SIX)
    unseen = {name for name, scores in test["directions"].items() if scores["zero_shot"]}
    assert unseen == {"zh-de"}
    learnt = [test["directions"][one]["chrf"]["value"] for one in SIX[:5]]
    assert test["chrf"]["value"] == pytest.approx(sum(learnt) / 5)
    data = load_translator_bundle(run, several_directions=True).recipe.data.one_way("de-zh")
    pairs = list(read_corpus(data.test[0], source="de", target="zh"))
    (tmp_path / "test.de").write_text("\n".join(one.source for one in pairs), "utf-8")
    (tmp_path / "test.zh").write_text("\n".join(one.target for one in pairs), "utf-8")
    wanted = Measurement(
        tmp_path / "test.zh", source=tmp_path / "test.de", model=run, target_language="zh"
    )
    again = measure(wanted).scores
    assert test["directions"]["de-zh"]["chrf"]["value"] == pytest.approx(again.chrf.value)
    kept = (run / "translations" / "de-zh" / "test.ref.zh").read_text("utf-8").splitlines()
    assert kept == [one.target for one in pairs]
    lines = [json.loads(one) for one in (run / "log.jsonl").read_text("utf-8").splitlines()]
    valid = [line for line in lines if line["kind"] == "valid"][-1]
    each = [valid[f"bleu_{one}"] for one in SIX]
    assert valid["bleu"] == pytest.approx(sum(each[:5]) / 5)


def test_a_resumed_run_is_the_uninterrupted_one(run: Path, tmp_path: Path) -> None:
    recipe = load_translator_bundle(run, several_directions=True).recipe
    with pytest.raises(TrainingStopped):
        train(recipe, run=tmp_path / "run", events=StopAtStep(3))
    train(recipe, run=tmp_path / "run", resume=True)
    assert weights_of_run(tmp_path / "run") == weights_of_run(run)


def test_the_command_asks_for_the_language(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ["--text", "The dog is old."]
    assert main(["translate", "--model", str(run), "--to", "de", *text]) == 0
    capsys.readouterr()
    assert main(["translate", "--model", str(run), *text]) == 2
    assert "translates into de, en, zh, and no target language was given" in capsys.readouterr().err
    assert main(["translate", "--model", str(run), "--to", "fr", *text]) == 2
    assert "its directions are: en → de, de → en" in capsys.readouterr().err
    assert main(["describe", str(run)]) == 0
    assert "en → de, de → en, en → zh, zh → en, de → zh" in capsys.readouterr().out
    assert "# Translator en → de, de → en" in (run / "model" / "README.md").read_text("utf-8")
    assert 'translator(["…"], to="de")' in (run / "model" / "README.md").read_text("utf-8")


def test_what_needs_one_direction_says_so(run: Path, tiny_run: Path) -> None:
    with pytest.raises(UsageError, match=r"several directions .* needs a translator of one"):
        load_translator_bundle(run)
    with pytest.raises(UsageError, match="no target language was given"):
        Translator.load(run)(["The dog is old."])
    with pytest.raises(UsageError, match="does not translate … → zh; its directions are: en → de"):
        Translator.load(tiny_run)(["The dog is old."], to="zh")
    assert Translator.load(tiny_run)(["The dog is old."], to="de")


def test_files_of_three_languages_are_read_in_the_directions_named(tmp_path: Path) -> None:
    for language in ("en", "de", "zh"):
        lines = [one.text(language) for one in sentences("train", 20)]
        (tmp_path / f"train.{language}").write_text("\n".join(lines) + "\n", "utf-8")
    corpora = (
        f"data.train=[{{path: {tmp_path}/train, directions: [de-en]}}, "
        "{kind: pocket, split: train, count: 30, directions: [en-de], tag: <bt>}]"
    )
    recipe = recipe_of("en-de", "de-en", more=(corpora, "data.valid=null"))
    prepared = prepare_data(recipe.data, recipe.text, tmp_path / "data")
    sources = [
        prepared.tokenizers.source.decode(prepared.train.source(i).tolist())
        for i in range(len(prepared.train))
    ]
    assert sources[0].startswith("<2en> ")
    assert sources[-1].startswith("<2de> <bt> ")
    assert 40 < len(sources) <= 50
    before = describe_inputs(recipe.data, recipe.text)
    (tmp_path / "train.de").write_text("anders\n", "utf-8")
    assert describe_inputs(recipe.data, recipe.text) != before


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (["data.directions=[en-de, en_de]"], "'en_de' is no direction"),
        (["data.directions=[en-zh-Hans]"], "'en-zh-Hans' is no direction"),
        (["data.directions=[en-de, en-de]"], "en-de is named twice"),
        (["data.directions=[de-en]"], "not those of the first of data.directions"),
        (["data.zero_shot=[en-de]"], "data.zero_shot needs data.directions"),
        (["data.directions=[en-de, de-en]", "data.zero_shot=[en-fr]"], "writes fr"),
        (["data.directions=[en-de]", "data.zero_shot=[fr-de]"], "has fr"),
        (["data.train={name: x, directions: [en-de]}"], "a corpus has the direction en-de"),
        (
            [
                "data.directions=[en-de, de-en]",
                "data.train={kind: pocket, split: train, directions: [en-de]}",
            ],
            "no corpus of data.train is read in the direction de-en",
        ),
        (["data.directions=[en-de, de-en]", "data.train=x.tsv"], "its columns must be named"),
        (
            ["data.directions=[en-de, de-en]", "text.shared=false", "model.embedding.tied=output"],
            "needs one vocabulary for all languages",
        ),
    ],
)
def test_recipes_that_cannot_work_are_refused(changes: list[str], sentence: str) -> None:
    with pytest.raises(SettingsError) as error:
        tiny_recipe(*changes)
    assert sentence in str(error.value)
