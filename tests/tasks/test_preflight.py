"""What every task is asked before its training."""

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from headwise.errors import UsageError
from headwise.tasks import memory_check
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.events import Silence
from headwise.tasks.memory_check import TooLargeError
from headwise.tasks.preflight import (
    check_before_start,
    check_prepared,
    knows_sizes,
    warn_of_lost_dropout,
)
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import check_run, train
from headwise.tasks.table import find_task
from headwise.tasks.task import training_of
from tests.tasks.every_task import TEXT, recipe_of
from tests.tasks.tiny import tiny_recipe

DROPOUT: dict[str, dict[str, Any]] = {
    # In a model: rates of which the first two round to nothing, and the last is no rate of `drop`.
    "decoder_only": {"dropout": {"residual": 0.001, "hidden": 0.0019, "attention": 0.001}},
    "recurrent": {"dropout": {"recurrent": 0.001, "word": 0.0019, "layer": 0.5}},
    "neural_ngram": {"dropout": 0.001},
}


def language_recipe(folder: Path, **model: Any) -> AnyRecipe:
    data = recipe_of("language_modeling", folder).model_dump(mode="json")
    return recipe_from({**data, "model": model, "reading": {"kind": "sentences", "row_tokens": 16}})


@pytest.mark.parametrize(
    ("kind", "lost"), [("decoder_only", 2), ("recurrent", 2), ("neural_ngram", 1)]
)
def test_a_rate_of_dropout_that_rounds_to_nothing_is_said(
    kind: str, lost: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        warn_of_lost_dropout(language_recipe(tmp_path, kind=kind))
        assert caplog.text == ""
        warn_of_lost_dropout(language_recipe(tmp_path, kind=kind, **DROPOUT[kind]))
    assert "is 0.001, but rates are multiples of 1/256" in caplog.text
    assert caplog.text.count("model.dropout") == lost


@pytest.mark.parametrize(
    "word", ["language_modeling", "classification", "masked_language", "bidirectional_language"]
)
def test_a_batch_larger_than_the_corpus_is_said(
    word: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recipe = recipe_of(word, tmp_path)
    task = find_task(recipe)
    tokens = task.count_tokens(recipe, task.prepare(recipe, tmp_path / "data", Silence()))
    assert sum(len(line.split()) for line in TEXT) <= tokens
    data = recipe.model_dump(mode="json")
    for factor, expected in ((1, False), (3, True)):
        caplog.clear()
        training = {**data["training"], "batch_tokens": factor * tokens}
        changed = recipe_from({**data, "training": training})
        prepared = task.prepare(changed, tmp_path / "data", Silence())
        with caplog.at_level(logging.WARNING):
            check_prepared(task, changed, prepared, num_processes=1, anyway=False)
        assert ("all of it about 3.0 times" in caplog.text) is expected


def test_processes_of_one_machine_share_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A language model that fits alone, and not four times."""
    recipe = language_recipe(tmp_path, kind="decoder_only", dim=8, layers=1, heads=2)
    task = find_task(recipe)
    prepared = task.prepare(recipe, tmp_path, Silence())
    assert not knows_sizes(recipe)

    def refused(num_processes: int, room: int) -> bool:
        monkeypatch.setattr(memory_check, "available_memory", lambda device: room)
        try:
            check_prepared(task, recipe, prepared, num_processes=num_processes, anyway=False)
        except TooLargeError:
            return True
        return False

    room = next(room for room in (1 << bits for bits in range(10, 40)) if not refused(1, room))
    with pytest.raises(TooLargeError, match="4 processes need about"):
        check_prepared(task, recipe, prepared, num_processes=4, anyway=False)
    assert not refused(1, room)


def test_a_vocabulary_that_words_may_reach_is_not_taken_for_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """text.size allows ten million words; the text has a few, and they decide."""
    data = recipe_of("language_modeling", tmp_path).model_dump(mode="json")
    recipe = recipe_from({**data, "text": {"kind": "words", "size": 10_000_000}})
    monkeypatch.setattr(memory_check, "available_memory", lambda device: 1 << 30)
    task = find_task(recipe)
    check_before_start(task, recipe, 1, anyway=False)
    check_run(recipe, directory=tmp_path / "scratch")


def test_pieces_are_refused_before_the_text_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = tiny_recipe()
    assert knows_sizes(recipe)
    monkeypatch.setattr(memory_check, "available_memory", lambda device: 1000)
    with pytest.raises(TooLargeError, match=r"lower model\.dim"):
        check_before_start(find_task(recipe), recipe, 1, anyway=False)
    assert training_of(recipe).batch_tokens == 512


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"compile": "on"}, "no compiler for cpu is installed"),
        ({"tensorboard": True}, "TensorBoard is not installed"),
    ],
)
def test_what_the_machine_lacks_is_refused_before_data_are_read(
    settings: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = recipe_of("classification", tmp_path).model_dump(mode="json")
    recipe = recipe_from({**data, "training": {**data["training"], **settings}})
    monkeypatch.setattr("headwise.training.compilation.find_compiler", lambda device: None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    monkeypatch.setattr(type(find_task(recipe)), "prepare", None)
    with pytest.raises(UsageError, match=message):
        check_run(recipe, directory=tmp_path / "scratch")
    with pytest.raises(UsageError, match=message):
        train(recipe, run=tmp_path / "a" / "run")
    assert not (tmp_path / "a").exists()


def test_graphs_of_several_processes_are_refused_before_data_are_read(tmp_path: Path) -> None:
    data = recipe_of("classification", tmp_path).model_dump(mode="json")
    recipe = recipe_from({**data, "training": {**data["training"], "cuda_graphs": "on"}})
    with pytest.raises(UsageError, match="sums over processes is not recorded"):
        check_before_start(find_task(recipe), recipe, 2, anyway=False)
