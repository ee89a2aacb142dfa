"""A mistake in a recipe that is told before torch is loaded is told in the words of the full check.

Tables of mistakes in both languages, and mistakes drawn at random for every shipped recipe."""

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from headwise.errors import HeadwiseError, SettingsError
from headwise.randomness import numpy_generator
from headwise.settings import outline
from headwise.tasks.early_check import refuse_early
from headwise.tasks.named_files import check_named_files
from headwise.tasks.outline_writing import write_outline
from headwise.tasks.recipe import load_recipe
from headwise.tasks.recipe_files import shipped_recipes
from headwise.tasks.run_notes import warn_of_measuring

MISTAKES = [
    ("pocket", ["trainin.steps=3"]),
    ("pocket", ["training.steps=abc"]),
    ("pocket", ["training.steps=true"]),
    ("pocket", ["training.steps=0"]),
    ("pocket", ["training.lr=3"]),
    ("pocket", ["training.steps=100", "training.stesp=3"]),
    ("pocket", ["training.steps"]),
    ("pocket", ["model.feed_forward.kind=swiglu"]),
    ("pocket", ["model.norm=rms"]),
    ("pocket", ["model.kind=recurent"]),
    ("pocket", ["model.encoder.attention={kind: window, lift: 8}"]),
    ("pocket", ["decoding.kind=beem"]),
    ("pocket", ["decoding.sise=8"]),
    ("pocket", ["decoding.max_length=many"]),
    ("pocket", ["text.kind=words", "data.trian=x"]),
    ("pocket", ["data.source=a b"]),
    ("pocket", ["steps=3"]),
    ("ud-ewt-tags", ["model.kind=encoder", "model.hiden=3"]),
    ("ptb-gpt", ["model.dim=0", "reading.kind=x"]),
]
VALUES = ["abc", "-1", "1.5", "[1]", "{a: 1}", "true", "null", "0", "7", "{kind: nothing}", "[]"]
NUM_DRAWN = 30


@pytest.fixture(name="said")
def _said() -> Iterator[list[str]]:
    """The warnings of the library."""
    said: list[str] = []

    class _Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger, handler = logging.getLogger("headwise"), _Handler()
    logger.addHandler(handler)
    yield said
    logger.removeHandler(handler)


def _outcome(said: list[str], check: Callable[[], Any]) -> tuple[Any, ...] | None:
    said.clear()
    try:
        check()
    except HeadwiseError as error:
        return type(error), error.en, error.zh, str(error.file), error.exit_status, tuple(said)
    return None


@pytest.mark.parametrize(("name", "overrides"), MISTAKES)
def test_mistakes_are_told_early_in_the_same_words(
    name: str, overrides: list[str], said: list[str]
) -> None:
    early = _outcome(said, lambda: refuse_early(name, overrides))
    assert early is not None
    assert early == _outcome(said, lambda: load_recipe(name, overrides))


def test_mistakes_in_a_file_are_told_early(tmp_path: Path, said: list[str]) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(
        "task: translation\ndata: {source: en, target: de, train: {kind: pocket}}\n"
        "modle: {dim: 64}\ntraining: {steps: many, schedule: {kind: cosin}}\n",
        encoding="utf-8",
    )
    early = _outcome(said, lambda: refuse_early(file))
    assert early is not None
    assert early == _outcome(said, lambda: load_recipe(file))


@pytest.mark.parametrize("name", sorted(shipped_recipes()))
def test_shipped_recipes_pass(name: str) -> None:
    refuse_early(name)


@pytest.mark.parametrize("number", range(2))
def test_drawn_mistakes_are_told_early_in_the_same_words(number: int, said: list[str]) -> None:
    generator = numpy_generator("early mistakes", number)

    def one_of(values: list[Any]) -> Any:
        return values[int(generator.integers(len(values)))]

    names, kinds, told = sorted(shipped_recipes()), _kinds(), 0
    paths = {}
    for _ in range(NUM_DRAWN):
        name = one_of(names)
        if name not in paths:
            paths[name] = list(_paths(load_recipe(name).model_dump(mode="json")))
        overrides = []
        for _ in range(one_of([1, 1, 2, 3])):
            path = one_of(paths[name])
            misspelt = path[:-2] + one_of(["", "x", path[-2:][::-1], path[-1] * 3])
            overrides.append(
                one_of(
                    [
                        f"{path}={one_of(VALUES)}",
                        f"{misspelt}=3",
                        f"{path}.{one_of(['kind', 'size', 'x'])}={one_of([*VALUES, *kinds])}",
                        f"{one_of([one for one in paths[name] if one.endswith('kind')])}"
                        f"={one_of([*kinds, 'nothing'])}",
                    ]
                )
            )
        early = _outcome(said, lambda: refuse_early(name, overrides))  # noqa: B023 - called here
        if early is not None:
            told += 1
            late = _outcome(said, lambda: load_recipe(name, overrides))  # noqa: B023
            assert early == late, (name, overrides)
    assert told > NUM_DRAWN / 2


def _kinds() -> list[str]:
    types = outline.read_outline()["types"].values()
    fields = [entry["fields"].get("kind") for entry in types if isinstance(entry, dict)]
    return sorted({word for field in fields if field for word in field[0]["words"]})


def _paths(data: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for name, value in data.items():
        yield above + name
        if isinstance(value, Mapping):
            yield from _paths(value, f"{above}{name}.")


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("pocket", ["data.train=no/train"]),
        ("pocket", ["data.train=no/train", "data.valid=no/valid"]),
        ("pocket", ["data.test=no/test.tsv", "data.source=de", "data.target=en"]),
    ],
)
def test_missing_files_are_told_early_in_the_same_words(
    name: str, overrides: list[str], said: list[str]
) -> None:
    early = _outcome(said, lambda: refuse_early(name, overrides, reads_text=True))
    assert early is not None

    def check_fully() -> None:
        recipe = load_recipe(name, overrides)
        warn_of_measuring(name, overrides)
        check_named_files(recipe)

    assert early == _outcome(said, check_fully)
    refuse_early(name, overrides)  # a plan does not read the text


def test_what_is_not_certain_passes(tmp_path: Path) -> None:
    """Values that a validator of a type beside torch code refuses, alone and with others."""
    at_odds = "model.encoder.attention={kind: window, left: 0, right: 0}"
    for overrides in ([at_odds], [at_odds, "training.stesp=3"], ["model.dim=130", "steps=3"]):
        refuse_early("pocket", overrides)
        with pytest.raises(SettingsError):
            load_recipe("pocket", overrides)
    missing = "data.train=no/train"
    refuse_early("pocket", [missing, "training.steps=3"], reads_text=True)


def test_the_outline_is_current() -> None:
    assert outline.FILE.read_text(encoding="utf-8") == write_outline(), (
        "settings have changed; run `python -m headwise.tasks.outline_writing`"
    )
