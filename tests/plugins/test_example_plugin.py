"""A package that Headwise does not know adds a word: trained, compared, checked, saved, used, and
missed."""

import json
from pathlib import Path

import pytest

from tests.plugins.environment import PLUGIN, Environment, make_environment
from tests.tasks.tiny import OVERRIDES

WORD = ("model.encoder.attention.kind=laplace", "model.encoder.attention.width=3.0")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = make_environment(tmp_path_factory.mktemp("environment"))
    made.install(PLUGIN)
    return made


@pytest.fixture(scope="module")
def run(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translator that was trained through the command line with the word of the package."""
    place = tmp_path_factory.mktemp("run")
    done = environment.run("train", "pocket", "--run", "laplace", *OVERRIDES, *WORD, cwd=place)
    assert done.returncode == 0, done.stderr
    return place / "laplace"


def test_it_is_trained_saved_loaded_and_translated_with(
    environment: Environment, run: Path
) -> None:
    recipe = (run / "model" / "recipe.yaml").read_text()
    assert "kind: laplace\n" in recipe
    assert "width: 3.0" in recipe
    assert "package: headwise-example\n" in recipe
    done = environment.run(
        "translate", "--model", str(run), "--text", "The dog is old.", "--json", cwd=run.parent
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])


def test_it_stands_in_a_comparison(environment: Environment, tmp_path: Path) -> None:
    done = environment.run(
        "compare", "attention", "--kinds", "full,laplace", "--lengths", "16", "--heads", "2",
        "--head-dim", "8", "--device", "cpu", "--directory", "kernels", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "laplace" in done.stdout


def test_it_obeys_the_laws(environment: Environment, tmp_path: Path) -> None:
    code = (
        "from headwise.laws import check; from headwise_laplace import Laplace; "
        "check(Laplace.example())"
    )
    done = environment.run_code(code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_wrong_setting_is_refused_by_its_own_bounds(
    environment: Environment, tmp_path: Path
) -> None:
    done = environment.run(
        "train", "pocket", "--check", *OVERRIDES, WORD[0], "model.encoder.attention.width=0",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    assert "model.encoder.attention.width: must be at least 0.001, not 0" in done.stderr


def test_without_the_package_the_error_names_it(
    environment: Environment, run: Path, tmp_path: Path
) -> None:
    bare = make_environment(tmp_path / "bare")
    done = bare.run("translate", "--model", str(run), "--text", "The dog is old.", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "the kind 'laplace' of the package headwise-example" in done.stderr
    assert "Traceback" not in done.stderr
    unknown = bare.run("train", "pocket", "--check", *OVERRIDES, WORD[0], cwd=tmp_path)
    assert unknown.returncode == 2
    assert "model.encoder.attention: no kind 'laplace'" in unknown.stderr
