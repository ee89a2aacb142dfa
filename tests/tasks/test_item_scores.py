"""Scores of items in a run directory: read again as written, other files refused."""

from pathlib import Path

import numpy as np
import pytest

from headwise.errors import DataError
from headwise.tasks.item_scores import item_file, read_item_scores, save_item_scores


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    loss = np.array([0.1, 1 / 3, np.inf])
    save_item_scores(tmp_path, "test", {"loss": loss, "tokens": [1, 2, 3]})
    found = read_item_scores(tmp_path, "test", ("tokens", "loss"))
    assert (found["loss"] == loss).all()
    assert found["tokens"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("text", ["not numbers\n", "[1, 2]\n", '{"loss": "x"}\n', '{"loss": 1}\n'])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / item_file("test")
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(DataError, match="not a file of scores"):
        read_item_scores(tmp_path, "test", ("loss", "tokens"))
