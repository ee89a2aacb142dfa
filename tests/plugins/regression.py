"""The task of the example package in this process, and a recipe of it that trains in a second.

The package is put on the path as an installer would: its files, and beside them its name and its
entry points.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headwise.randomness import numpy_generator
from tests.plugins.environment import PLUGIN, write_metadata
from tests.tasks.every_task import TRAINING

WORD = "regression"


@contextmanager
def installed(directory: Path) -> Iterator[None]:
    """Inside, the example package can be imported and its words are found."""
    write_metadata(PLUGIN, directory)
    places = [str(directory), str(PLUGIN / "src")]
    sys.path += places
    try:
        yield
    finally:
        sys.path[:] = [place for place in sys.path if place not in places]


def regression_recipe(folder: Path, **training: Any) -> dict[str, Any]:
    """Points of y = x₁ − 2 x₂, written into the folder, and the recipe that learns them."""
    file = folder / "points.txt"
    if not file.exists():
        inputs = numpy_generator("points").normal(size=(67, 2)).round(3)
        lines = [f"{one} {two} {one - 2 * two:.3f}" for one, two in inputs.tolist()]
        file.write_text("\n".join(lines) + "\n")
    return {
        "task": WORD,
        "data": {"train": str(file), "valid": str(file)},
        "model": {"hidden": 61},
        "training": {**TRAINING, "batch_tokens": 13, **training},
    }
