"""Reads from a run directory how far its training has come. This file does not import torch."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.errors import HeadwiseError
from headwise.settings import DEFAULT_TASK, read_settings_file
from headwise.training.run_lock import lock_is_held
from headwise.training.run_recipe import FILE as RECIPE


@dataclass(frozen=True)
class RunStatus:
    """The state of a run directory without a finished model."""

    task: str
    steps: int | None
    """Of the whole training; None if the recipe has no number of steps."""
    last: int | None
    """The newest checkpoint's step."""
    best: int | None
    """The step of the best validation so far."""
    is_training: bool
    """Whether a trainer is working in the directory."""


def read_status(path: Path) -> RunStatus | None:
    """None if the directory holds no run, or its recipe cannot be read."""
    if not (path / RECIPE).is_file():
        return None
    try:
        recipe = read_settings_file(path / RECIPE)
    except HeadwiseError:
        return None
    training: Any = recipe.get("training")
    steps = training.get("steps") if isinstance(training, dict) else None
    return RunStatus(
        task=str(recipe.get("task", DEFAULT_TASK)),
        steps=steps if isinstance(steps, int) else None,
        last=max(saved_steps(path / "checkpoints"), default=None),
        best=max(saved_steps(path / "best"), default=None),
        is_training=lock_is_held(path),
    )


def saved_steps(folder: Path) -> list[int]:
    """The steps of the directories `step-N`, oldest first."""
    names = (re.fullmatch(r"step-(\d+)", child.name) for child in folder.glob("step-*"))
    return sorted(int(name[1]) for name in names if name)
