"""Every command that is given a model of another package's task says what the model is."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from headwise.cli.main import main
from headwise.comparing.recipes import compare
from headwise.tasks.recipe import load_recipe
from headwise.tasks.run import train
from headwise.tasks.table import find_task
from headwise.tasks.task import Task
from tests.plugins.regression import installed, regression_recipe
from tests.processes import Python


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with a recipe, a finished run and a text."""
    made = tmp_path_factory.mktemp("place")
    with installed(tmp_path_factory.mktemp("packages")):
        (made / "regression.yaml").write_text(yaml.safe_dump(regression_recipe(made)))
        (made / "text.txt").write_text("the dog sleeps\n")
        (made / "senses.tsv").write_text("bank\tmoney\t1\tthe bank\nbank\triver\t1\tthe bank\n")
        train(load_recipe(made / "regression.yaml"), run=made / "line")
        yield made


@pytest.mark.parametrize(
    "words",
    [
        "translate --model line --text a",
        "serve line",
        "explore line --no-browser",
        "export line there",
        "classify --model line a",
        "tag --model line a",
        "score --model line a",
        "predict --model line a",
        "generate --model line a",
        "nearest word --model line",
        "senses --model line --train senses.tsv --test senses.tsv",
        "evaluate --model line --source text.txt --reference text.txt",
    ],
    ids=lambda words: words.split()[0],
)
def test_commands_for_other_tasks_say_what_the_model_is(
    words: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place)
    assert main(words.split()) in (2, 3)
    said = capsys.readouterr().err
    assert "regression" in said
    assert "`headwise `" not in said, "no command uses such a model"


def test_its_models_are_compared(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs are processes of their own, which find the package as this one does."""
    added = [part for part in sys.path if part not in ("", str(place))]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(added))
    monkeypatch.setattr("headwise.comparing.run_processes.subprocess.Popen", Python)
    result = compare(
        [str(place / "regression.yaml"), "model.hidden=1,9"], directory=place / "compared"
    )
    assert not result.failed, result.remarks()
    assert result.headings()[1] == "loss of a point, 95 % interval"
    assert result.variants[1].differences["loss"].p_value is not None
    assert any("scores are those of data.valid" in line for line in result.remarks())


def test_a_task_that_does_not_say_what_is_scored_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    task = type(find_task(load_recipe(place / "regression.yaml")))
    monkeypatch.setattr(task, "comparison_metrics", Task.comparison_metrics)
    monkeypatch.chdir(place)
    words = "compare regression.yaml model.hidden=3,5 --directory there"
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert "the task (RegressionTask) has no method `comparison_metrics`" in " ".join(said.split())
    assert not (place / "there").exists()
