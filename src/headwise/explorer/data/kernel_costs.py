"""Reads measured costs of attention kernels: ours on an H200, and those of the user.

Our measurements come with the package. `headwise compare attention --directory runs/attention`
writes `attention.json`; every such file under a directory of runs is read.

    {"machine": …, "conditions": …, "slopes": {kernel: …},
     "points": [{kernel, length, forward_seconds, both_seconds, memory_mib, …}]}

Tested against: the table of docs/experiments/attention-kernels.md; a file made by the command.
"""

import json
from importlib import resources
from pathlib import Path
from typing import Any

from headwise.errors import DataError
from headwise.explorer.data.untrusted_files import (
    is_file_inside,
    is_sendable,
    number_of,
    read_json_inside,
    text_of,
)

FILE = "attention.json"
MAX_BYTES, MAX_POINTS, MAX_FILES = 1 << 20, 2000, 16
NUMBERS = ("forward_seconds", "both_seconds", "memory_mib", "distance")


def shipped_costs() -> dict[str, Any]:
    """Our measurements; docs/experiments/attention-kernels.md describes how they were made."""
    place = resources.files("headwise.explorer").joinpath("data", "kernel_costs_h200.json")
    return {
        "name": "h200",
        "shipped": True,
        **_checked(json.loads(place.read_text(encoding="utf-8")), Path("h200")),
    }


def find_costs(root: Path) -> list[dict[str, Any]]:
    """The user's measurements: attention.json in the directory and up to two levels below it. Files
    that cannot be read are left out.
    """
    found = []
    for path in sorted([root / FILE, *root.glob(f"*/{FILE}"), *root.glob(f"*/*/{FILE}")])[
        :MAX_FILES
    ]:
        if not is_file_inside(root, path) or not is_sendable(
            path.parent.relative_to(root).as_posix()
        ):
            continue
        try:
            content = _checked(read_json_inside(root, path, max_bytes=MAX_BYTES), path)
        except (DataError, ValueError, OSError, RecursionError):
            continue
        found.append(
            {"name": path.parent.relative_to(root).as_posix(), "shipped": False, **content}
        )
    return found


def _checked(content: Any, path: Path) -> dict[str, Any]:
    """The values that are drawn, after checking their types; the rest of the file is ignored."""
    points = content.get("points") if isinstance(content, dict) else None
    if not isinstance(points, list) or len(points) > MAX_POINTS:
        raise DataError(
            "holds no table of measured points; make one with `headwise compare attention`",
            "没有测点表；请用 `headwise compare attention` 生成",
            file=path,
        )
    rows = []
    for point in points:
        if not isinstance(point, dict) or not isinstance(number_of(point.get("length")), int):
            continue
        row: dict[str, Any] = {
            "kernel": text_of(point.get("kernel"), 40),
            "length": point["length"],
        }
        row |= {name: _number(point.get(name)) for name in NUMBERS}
        row |= {
            name: None if point.get(name) is None else text_of(point[name], 200)
            for name in ("skipped", "remark")
        }
        rows.append(row)
    machine, conditions = (_facts(content.get(name)) for name in ("machine", "conditions"))
    return {"machine": machine, "conditions": conditions, "points": rows}


def _number(value: Any) -> float | None:
    number = number_of(value)
    return None if number is None else float(number)


def _facts(value: Any) -> dict[str, str]:
    items = list(value.items())[:20] if isinstance(value, dict) else []
    return {text_of(name, 40): text_of(fact, 160) for name, fact in items}
