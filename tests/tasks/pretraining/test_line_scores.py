"""Lines of pre-trained models: the same tokens at any batch size, and the sum of the validation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwise.data.text.masking import MASK
from headwise.tasks.events import Silence
from headwise.tasks.item_scores import read_item_scores
from headwise.tasks.pretraining.line_scores import mask_line
from headwise.tasks.recipe import recipe_from
from headwise.tasks.table import find_task
from tests.tasks.every_task import recipe_of


def _prepare(word: str, folder: Path, **data: Any) -> tuple[Any, Any, Any, Any]:
    settings = recipe_of(word, folder).model_dump(mode="json")
    settings["data"] |= data
    recipe = recipe_from(settings)
    task = find_task(recipe)
    prepared = task.prepare(recipe, folder, Silence())
    return task, recipe, prepared, task.build(recipe, prepared).eval()


def test_a_line_has_the_same_masked_tokens_each_time() -> None:
    line = [7, 3, 9, 11, 8]
    shown, targets = mask_line(line, 4)
    assert (shown, targets) == mask_line(line, 4)
    asked = [index for index, target in enumerate(targets) if target]
    assert len(asked) == 1
    assert shown[asked[0]] == MASK
    assert targets[asked[0]] == line[asked[0]] != 3, "an unknown word is not asked for"
    assert mask_line([3, 3], 0) == ([3, 3], [0, 0])
    assert sum(target > 0 for target in mask_line(list(range(4, 104)), 0)[1]) == 15


@pytest.mark.parametrize("word", ["masked_language", "bidirectional_language"])
def test_rows_do_not_change_what_a_line_is_asked(word: str, tmp_path: Path) -> None:
    """Rows hold other lines, but each line is read by itself: losses and counts are the same."""
    found = []
    for tokens in (16, 40):
        task, recipe, prepared, model = _prepare(word, tmp_path, row_tokens=tokens)
        task.save_lines(recipe, prepared, model, "valid", tmp_path)
        found.append(read_item_scores(tmp_path, "valid", ("loss", "tokens")))
    first, second = found
    assert (first["tokens"] == second["tokens"]).all()
    assert (first["tokens"] > 0).all()
    assert np.allclose(first["loss"], second["loss"], atol=1e-4)


def test_lines_of_elmo_sum_to_its_validation(tmp_path: Path) -> None:
    task, recipe, prepared, model = _prepare("bidirectional_language", tmp_path)
    task.save_lines(recipe, prepared, model, "valid", tmp_path)
    kept = read_item_scores(tmp_path, "valid", ("loss", "tokens"))
    evaluate = task.validation(recipe, prepared, model)
    loss = kept["loss"].sum() / kept["tokens"].sum()
    assert loss == pytest.approx(evaluate(0)["loss"], rel=1e-5)
