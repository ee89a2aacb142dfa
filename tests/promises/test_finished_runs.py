"""A finished run is kept: `train` does not write over it, and `--resume` keeps its results."""

import json
import shutil
from pathlib import Path

import pytest

from headwise.cli.main import main
from headwise.errors import UsageError
from headwise.tasks.run import train
from headwise.tasks.table import find_task
from tests.promises.recipes import EVERY, STEPPED, FinishedRuns, make_recipe, weights_of_run


@pytest.mark.parametrize("name", EVERY)
def test_a_finished_run_is_not_written_over(name: str, finished: FinishedRuns) -> None:
    recipe, run = finished.of(name).recipe, finished.of(name).run
    before = weights_of_run(run)
    with pytest.raises(UsageError, match="holds a run already"):
        train(recipe, run=run)
    assert weights_of_run(run) == before


@pytest.mark.parametrize("name", STEPPED)
def test_a_finished_run_that_is_resumed_keeps_its_results_and_card(
    name: str, finished: FinishedRuns, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The time and the memory of a session without a step are not those of the training."""
    recipe, results = finished.of(name).recipe, finished.of(name).summary.results
    run, model = tmp_path / "run", tmp_path / "run" / "model"
    shutil.copytree(finished.of(name).run, run)
    before = {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}
    assert main(["train", str(run / "recipe.yaml"), "--run", str(run), "--resume"]) == 0
    assert "is finished" in " ".join(capsys.readouterr().err.split())
    assert {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()} == before
    again = train(recipe, run=run, resume=True).results
    assert json.loads(json.dumps(again)) == json.loads(json.dumps(dict(results)))


def test_a_finished_run_that_was_not_measured_is_measured_by_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = make_recipe("classification", tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(type(find_task(recipe)), "measure", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train(recipe, run=tmp_path / "run")
    trained = json.loads((tmp_path / "run" / "model" / "results.json").read_text())
    results = train(recipe, run=tmp_path / "run", resume=True).results
    assert results["valid"]
    assert {name: results[name] for name in trained} == trained, "those of the training stay"
