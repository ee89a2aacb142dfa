"""A run that is not finished: where it stands, translating with what it has, going on without its
recipe."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file

from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.tasks.translation.translator import Translator
from headwise.training.run_lock import release_lock, take_lock
from headwise.weights import put_weights, weights_of
from tests.cli.conftest import Headwise


@pytest.fixture(name="unfinished")
def _unfinished(tiny_run: Path) -> Path:
    """As a kill after the checkpoint of step 4 of 6 leaves it."""
    run = Path(shutil.copytree(tiny_run, "mine"))
    shutil.rmtree(run / "model")
    shutil.rmtree(run / "checkpoints" / "step-6")
    for step in (run / "best").glob("step-6*"):
        shutil.rmtree(step)
    (run / "LATEST").write_text("step-4\n", encoding="utf-8")
    return run


def test_a_run_without_a_model_says_where_it_stands(headwise: Headwise, unfinished: Path) -> None:
    answer = headwise("translate", "--model", "mine", "--text", "The cat sleeps.")
    assert answer.status == 3
    assert (
        "mine: training is not finished, so there is no model yet: step 4 of 6 is saved"
        in answer.err
    )
    assert "`--model mine --checkpoint last` uses it as it is" in answer.err
    assert "go on with `headwise train --run mine --resume`" in answer.err
    chinese = headwise(
        "--lang", "zh", "translate", "--model", "mine", "--text", "The cat sleeps."
    ).err
    assert "训练尚未完成，还没有模型：已保存到第 4 步（共 6 步）" in chinese
    lock = take_lock(unfinished)
    assert (
        "a trainer is at work: wait for it"
        in headwise(
            "evaluate", "--model", "mine", "--source", "mine/LATEST", "--reference", "mine/LATEST"
        ).err
    )
    release_lock(lock)
    shutil.rmtree(unfinished / "checkpoints")
    assert (
        "nothing is saved yet; go on with"
        in headwise("translate", "--model", "mine", "--text", "a").err
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_place_of_the_model_is_answered_as_the_run_is(
    headwise: Headwise, unfinished: Path, language: str
) -> None:
    """README speaks of runs/mine/model, which is there when training is finished."""
    asked = ("--lang", language, "translate", "--text", "a", "--model")
    assert headwise(*asked, "mine/model") == headwise(*asked, "mine")
    with_checkpoint = headwise(*asked, "mine/model", "--checkpoint", "last")
    assert (with_checkpoint.status, with_checkpoint.out) == (
        0,
        headwise(*asked, "mine", "--checkpoint", "last").out,
    )
    assert headwise("doctor", "mine/model").out == headwise("doctor", "mine").out
    assert unfinished.is_dir()


def test_a_command_that_needs_a_finished_run_says_so(headwise: Headwise, unfinished: Path) -> None:
    for place in ("mine", "mine/model"):
        asked = (("describe", place), ("export", place, "out"), ("serve", place))
        for command in asked:
            answer = headwise(*command)
            assert (answer.status, "mine: training is not finished" in answer.err) == (3, True), (
                answer.err
            )
            assert "this command needs a finished run" in answer.err
            assert "go on with `headwise train --run mine --resume`" in answer.err
    assert "本命令需要已完成的运行" in headwise("--lang", "zh", "describe", "mine").err
    assert unfinished.is_dir()


def test_a_checkpoint_is_evaluated_as_it_translates(headwise: Headwise, unfinished: Path) -> None:
    Path("text.en").write_text("The cat sleeps.\nThe dog is old.\n", encoding="utf-8")
    asked = (
        "evaluate",
        "--model",
        "mine/model",
        "--source",
        "text.en",
        "--reference",
        "text.en",
        "--json",
    )
    refused = headwise(*asked)
    assert (refused.status, "`--model mine --checkpoint last` uses it as it is" in refused.err) == (
        3,
        True,
    )
    answer = headwise(*asked, "--checkpoint", "last", "--output", "text.de")
    assert (answer.status, json.loads(answer.out or "{}").get("step")) == (0, 4), answer.err
    translated = headwise("translate", "--model", "mine", "--checkpoint", "last", "text.en").out
    assert Path("text.de").read_text(encoding="utf-8") == translated
    table = headwise(*asked[:-1], "--checkpoint", "last").out
    assert "weights of step 4: the training is not finished" in table
    alone = headwise(
        "evaluate", "--hypothesis", "text.en", "--reference", "text.en", "--checkpoint", "last"
    )
    assert (alone.status, "--checkpoint last was given without --model" in alone.err) == (2, True)
    assert unfinished.is_dir()


def test_a_model_that_does_not_exist_is_not_a_damaged_one(
    headwise: Headwise, unfinished: Path
) -> None:
    (unfinished.parent / "others" / "en-de").mkdir(parents=True)
    for given, near in (("others/en-dee", "others/en-de"), ("othres/en-de", "others/en-de")):
        answer = headwise("translate", "--model", given, "--text", "a")
        assert (
            f"{given}: does not exist; did you mean {near}? give e.g. runs/demo/model" in answer.err
        )
        assert f"{given}: does not exist; did you mean {near}?" in headwise("doctor", given).err
    nothing = headwise("--lang", "zh", "translate", "--model", "xyz", "--text", "a")
    assert (nothing.status, "xyz: 不存在；请给出例如 runs/demo/model" in nothing.err) == (
        3,
        True,
    ), nothing.err


def test_a_checkpoint_translates_as_its_weights_do(
    headwise: Headwise, unfinished: Path, tiny_run: Path
) -> None:
    """The same weights in a bundle of their own are the reference."""
    before = sorted((path, path.stat().st_mtime_ns) for path in unfinished.rglob("*"))
    last = headwise(
        "translate",
        "--model",
        "mine",
        "--checkpoint",
        "last",
        "--text",
        "The cat sleeps.",
        "--json",
    )
    assert (last.status, "mine: weights of step 4 of 6" in last.err) == (0, True), last.err
    assert sorted((path, path.stat().st_mtime_ns) for path in unfinished.rglob("*")) == before
    finished = headwise(
        "translate",
        "--model",
        tiny_run,
        "--checkpoint",
        "last",
        "--text",
        "The cat sleeps.",
        "--json",
    )
    for step, said in ((4, last), (6, finished)):
        bundle = load_translator_bundle(tiny_run)
        put_weights(
            weights_of(bundle.model),
            load_file(tiny_run / "checkpoints" / f"step-{step}" / "model.safetensors"),
        )
        expected = Translator(bundle)(["The cat sleeps."])[0]
        assert json.loads(said.out)["score"] == pytest.approx(expected.score, abs=1e-5)
    assert json.loads(last.out)["score"] != pytest.approx(
        json.loads(finished.out)["score"], abs=1e-5
    )


def test_a_damaged_checkpoint_makes_way_for_the_one_before(
    headwise: Headwise, unfinished: Path
) -> None:
    shutil.copytree(unfinished / "checkpoints" / "step-4", unfinished / "checkpoints" / "step-5")
    weights = unfinished / "checkpoints" / "step-5" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    answer = headwise(
        "translate", "--model", "mine", "--checkpoint", "last", "--text", "The cat sleeps."
    )
    assert (answer.status, "weights of step 4" in answer.err) == (0, True), answer.err
    shutil.rmtree(unfinished / "checkpoints" / "step-4")
    answer = headwise(
        "translate", "--model", "mine", "--checkpoint", "last", "--text", "The cat sleeps."
    )
    assert (answer.status, "model.safetensors: is damaged" in answer.err) == (3, True), answer.err


def test_what_has_no_checkpoint(headwise: Headwise, unfinished: Path, tiny_run: Path) -> None:
    shutil.rmtree(unfinished / "best", ignore_errors=True)
    answer = headwise("translate", "--model", "mine", "--checkpoint", "best", "--text", "a")
    assert (answer.status, "has no best checkpoint yet" in answer.err) == (3, True), answer.err
    answer = headwise(
        "translate", "--model", tiny_run / "model", "--checkpoint", "last", "--text", "a"
    )
    assert (answer.status, "is no run directory" in answer.err) == (2, True), answer.err


def test_the_mean_of_checkpoints_translates(headwise: Headwise, tiny_run: Path) -> None:
    """The same mean, computed here, in a bundle of its own."""
    bundle = load_translator_bundle(tiny_run)
    files = [tiny_run / "checkpoints" / f"step-{step}" / "model.safetensors" for step in (4, 6)]
    first, second = map(load_file, files)
    mean = {name: (first[name] + second[name]) / 2 for name in first}
    put_weights(weights_of(bundle.model), mean)
    expected = Translator(bundle)(["The cat sleeps."])[0]
    for which in ("average", "average:2"):
        words = ("--checkpoint", which, "--text", "The cat sleeps.", "--json")
        answer = headwise("translate", "--model", tiny_run, *words)
        said = "mean of the weights of its last checkpoints, up to step 6 of 6"
        assert (answer.status, said in answer.err) == (0, True), answer.err
        assert json.loads(answer.out)["score"] == pytest.approx(expected.score, abs=1e-5)


def test_a_mean_of_more_checkpoints_than_are_kept(headwise: Headwise, unfinished: Path) -> None:
    asked = ("translate", "--model", "mine", "--text", "a", "--checkpoint")
    few = headwise(*asked, "average")
    assert (few.status, "keeps 1 whole checkpoints (step 4)" in few.err) == (3, True), few.err
    many = headwise(*asked, "average:7")
    assert "--checkpoint average:7 averages 7; a run that shall keep more" in many.err
    assert "is trained with training.keep.last=7" in many.err
    for wrong in ("average:1", "average:x", "first"):
        answer = headwise(*asked, wrong)
        assert (answer.status, "give best, last, average, or average:N" in answer.err) == (2, True)
    assert unfinished.is_dir()


def test_a_run_goes_on_without_its_recipe(headwise: Headwise, unfinished: Path) -> None:
    answer = headwise("train", "--run", "mine", "--resume", "--json")
    assert (answer.status, json.loads(answer.out or "{}").get("steps")) == (0, 6), answer.err
    more = headwise("train", "training.steps=7", "--run", "mine", "--resume", "--json")
    assert (more.status, json.loads(more.out or "{}").get("steps")) == (0, 7), more.err


@pytest.mark.parametrize(
    "words",
    [["--resume"], ["mine.yaml", "--resume"], ["mine.yaml"], ["mine.yaml", "--check", "--resume"]],
    ids=" ".join,
)
def test_a_run_whose_recipe_is_missing_is_mended_by_its_copy(
    words: list[str], headwise: Headwise, unfinished: Path
) -> None:
    """As `headwise doctor` says it."""
    Path("mine/recipe.yaml").rename("mine.yaml")
    before = sorted(Path("mine").rglob("*"))
    refused = headwise("train", "--run", "mine", *words)
    assert refused.status == 3
    said = " ".join(refused.err.split())
    assert "mine/recipe.yaml: is missing, resuming is not possible; to mend it: cp" in said
    assert said in " ".join(headwise("doctor", "mine").out.split()).replace(
        "✗ mine/recipe.yaml", "headwise: error: mine/recipe.yaml"
    )
    assert sorted(Path("mine").rglob("*")) == before
    _, copy, place = said.partition("to mend it: ")[2].split()
    shutil.copy(copy, place)
    assert headwise("train", "--run", "mine", "--resume").status == 0


def test_without_a_recipe_there_must_be_a_run(headwise: Headwise) -> None:
    nothing = headwise("train", "--run", "mine")
    assert (
        nothing.status,
        "RECIPE is missing: give a recipe file or a shipped name" in nothing.err,
    ) == (2, True)
    change = headwise("train", "training.steps=3", "--run", "mine")
    assert (change.status, "RECIPE is missing" in change.err) == (2, True)
    resumed = headwise("train", "--run", "mine", "--resume")
    assert (
        resumed.status,
        "mine holds no run to go on with: there is no mine/recipe.yaml" in resumed.err,
    ) == (2, True)
    assert list(Path().iterdir()) == []
