"""Saves what each item of a test set adds to a score, for comparisons of runs.

    runs/mine/scores/test.jsonl       one line for each item (a sentence, a text, a point):
                                      {"loss": 31.25, "tokens": 7}

A paired significance test of two models needs these numbers; their means alone do not suffice.
Tested: a file is read back as it was written; a file of another form is refused.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.errors import DataError
from headwise.storage import write_text
from headwise.tasks.text_input import read_text_lines

FOLDER = "scores"

Columns = Mapping[str, Sequence[float] | NDArray[Any]]


def item_file(part: str) -> str:
    """The file of a part, relative to the run directory."""
    return f"{FOLDER}/{part}.jsonl"


def save_item_scores(directory: Path, part: str, columns: Columns) -> None:
    """Write the numbers of each item, by name, into a run directory."""
    path = directory / item_file(part)
    path.parent.mkdir(exist_ok=True)
    lists = [np.asarray(column, dtype=np.float64).tolist() for column in columns.values()]
    items = (dict(zip(columns, item, strict=True)) for item in zip(*lists, strict=True))
    write_text(path, "".join(f"{json.dumps(item)}\n" for item in items))


def read_item_scores(
    directory: Path, part: str, names: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """The numbers of all items by name."""
    path = directory / item_file(part)
    try:
        items = [json.loads(line) for line in read_text_lines(path)]
        return {name: np.array([float(item[name]) for item in items]) for name in names}
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(
            f"is not a file of scores ({', '.join(names)}); remove the run and train it again",
            f"不是记录分数（{'、'.join(names)}）的文件；请删除该次运行并重新训练",
            file=path,
        ) from error
