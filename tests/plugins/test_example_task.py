"""A package that Headwise does not know adds a task: trained, stopped, resumed and used."""

import json
from pathlib import Path

import pytest
import yaml

from tests.plugins.environment import PLUGIN, Environment, make_environment
from tests.plugins.regression import regression_recipe


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    made = make_environment(tmp_path_factory.mktemp("environment"))
    made.install(PLUGIN)
    return made


@pytest.fixture(scope="module")
def run(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A regression that was trained, interrupted and resumed through the command line."""
    place = tmp_path_factory.mktemp("run")
    schedule = {"kind": "constant", "peak": 0.01}
    recipe = regression_recipe(place, steps=300, schedule=schedule, log_every=50)
    (place / "regression.yaml").write_text(yaml.safe_dump(recipe))
    words = ("train", "regression.yaml", "--run", "line")
    for more in (["training.time_limit=1e-9"], ["--resume"]):
        done = environment.run(*words, *more, cwd=place)
        assert done.returncode == 0, done.stderr
    return place / "line"


def test_the_loss_falls(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if line["kind"] == "train"]
    assert losses[-1] < losses[0] / 10


def test_the_model_is_used_from_python(environment: Environment, run: Path) -> None:
    code = (
        "from headwise_regression.regressor import Regressor\n"
        f"print(*Regressor.load({str(run)!r})([[1.0, 0.0], [0.0, 1.0]]))"
    )
    done = environment.run_code(code, cwd=run.parent)
    assert done.returncode == 0, done.stderr
    first, second = map(float, done.stdout.split())
    assert abs(first - 1) < 0.3
    assert abs(second + 2) < 0.3


def test_run_and_bundle_remember_the_package(run: Path) -> None:
    for file in (run / "recipe.yaml", run / "model" / "recipe.yaml"):
        saved = yaml.safe_load(file.read_text())
        assert saved["packages"] == [
            {
                "group": "headwise.tasks",
                "word": "regression",
                "package": "headwise-example",
                "version": "0.1.0",
            }
        ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("doctor", "line"), "a whole bundle, regression of 2 inputs"),
        (("schema", "regression"), "NetworkSettings"),
        (("recipes",), "regression\theadwise-example 0.1.0"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_commands_know_the_task(
    environment: Environment, run: Path, words: tuple[str, ...], expected: str
) -> None:
    done = environment.run(*words, cwd=run.parent)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout + done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "line"),
        ("train", "--run", "line", "--resume"),
        ("translate", "--model", "line", "--text", "a"),
    ],
    ids=lambda words: words[0],
)
def test_without_the_package_the_error_names_it(
    bare: Environment, run: Path, words: tuple[str, ...]
) -> None:
    done = bare.run(*words, cwd=run.parent)
    assert done.returncode in (2, 3), done.stderr
    assert "the task 'regression' of the package headwise-example" in (done.stderr + done.stdout)
    assert "Traceback" not in done.stderr


def test_without_the_package_the_task_is_unknown(bare: Environment, run: Path) -> None:
    done = bare.run("train", "regression.yaml", "--check", cwd=run.parent)
    assert done.returncode == 2
    assert "task: must be 'translation' or" in done.stderr


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return make_environment(tmp_path_factory.mktemp("bare"))
