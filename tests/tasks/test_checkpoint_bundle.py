"""Models of unfinished runs: of tasks other than translation, by the commands that use them."""

import shutil
from pathlib import Path

import pytest

from headwise.cli.main import main
from headwise.errors import CheckpointError, UsageError
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.checkpoint_bundle import write_checkpoint_bundle
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import train
from headwise.weights import read_tensors
from tests.tasks.every_task import recipe_of


def stream_recipe(folder: Path) -> AnyRecipe:
    """A recurrent model whose states are carried from batch to batch, and saved with it."""
    data = recipe_of("language_modeling", folder).model_dump(mode="json")
    return recipe_from({**data, "reading": {"kind": "stream", "length": 5}})


def unfinished(folder: Path, recipe: AnyRecipe) -> Path:
    train(recipe, run=folder / "run")
    shutil.rmtree(folder / "run" / "model")
    return folder / "run"


def test_states_that_training_carries_are_no_weights(tmp_path: Path) -> None:
    run = unfinished(tmp_path, stream_recipe(tmp_path))
    step, _ = write_checkpoint_bundle(run, "last", tmp_path / "early")
    saved = read_tensors(run / "checkpoints" / f"step-{step}" / "model.safetensors")
    written = read_tensors(tmp_path / "early" / "weights.safetensors")
    assert any(name.startswith("state_") for name in saved)
    assert all(saved[f"model.{name}"].equal(tensor) for name, tensor in written.items())
    assert LanguageModel.load(tmp_path / "early").score(["the dog sleeps"])[0].perplexity > 1


def test_text_that_has_changed_is_refused(tmp_path: Path) -> None:
    run = unfinished(tmp_path, stream_recipe(tmp_path))
    with (tmp_path / "text.txt").open("a", encoding="utf-8") as text:
        text.write("the dog eats a fish\n")
    with pytest.raises(CheckpointError, match="trained on other data than its recipe names now"):
        write_checkpoint_bundle(run, "last", tmp_path / "early")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no run directory"):
        write_checkpoint_bundle(tmp_path, "last", tmp_path / "early")


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("language_modeling", ("predict", "the dog", "--model")),
        ("language_modeling", ("score", "the dog sleeps", "--model")),
        ("language_modeling", ("generate", "the", "--length", "3", "--model")),
        ("classification", ("classify", "the dog sleeps", "--model")),
        ("tagging", ("tag", "the dog sleeps", "--model")),
        ("masked_language", ("predict", "the ____ sleeps", "--model")),
    ],
    ids=lambda given: given if isinstance(given, str) else given[0],
)
def test_commands_take_a_checkpoint(
    task: str, words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = unfinished(tmp_path, recipe_of(task, tmp_path))
    assert main([*words, str(run)]) == 3
    assert f"`--model {run} --checkpoint last` uses it as it is" in capsys.readouterr().err
    for which in ("last", "best"):
        assert main([*words, str(run), "--checkpoint", which]) == 0
        answer = capsys.readouterr()
        assert answer.out
        assert f"{run}: weights of step 4 of 4" in answer.err or which == "best"
