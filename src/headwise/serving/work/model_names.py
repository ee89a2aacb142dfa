"""Reads the names of served models, which are given as DIR or NAME=DIR."""

import os
import re
from pathlib import Path

from headwise.errors import UsageError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def split_name(given: str) -> tuple[str, Path]:
    """The name and the directory of DIR or NAME=DIR."""
    head, equals, tail = given.partition("=")
    if equals and not Path(given).exists():
        name, path = head, Path(tail)
    else:
        path = Path(given)
        whole = Path(os.path.realpath(path))  # unlike `resolve` it accepts circular links
        name = whole.parent.name if whole.name == "model" else whole.name
        name = re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip("-._")[:64] or "model"
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be a model's name; use letters, digits, '.', '_', '-', at most 64, "
            "e.g. demo=runs/demo",
            f"{name!r} 不能用作模型名；请用字母、数字、'.'、'_'、'-'，最多 64 个，例如 "
            "demo=runs/demo",
        )
    return name, path
