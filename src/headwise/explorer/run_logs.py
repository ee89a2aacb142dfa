"""The logs of trainings under one directory, for whoever watches: what there is, and what is new since the last look.

    runs/mine/log.jsonl      one JSON object a line (training/journal.py); a line is whole or not there
    runs/mine/model/         there when the run is finished; results.json holds its scores

`read_run` goes on from a byte: a live run is asked again and again and hands out only what it has written since. A log that has
become shorter was cut back by a resumed run, and is read from its beginning (`restarted`). Names are paths below the directory and nothing
else: what leads out of it, by .. or by a link, is not found. Long logs are thinned to at most `MAX_LINES` lines of each kind.

Tested against: a log that grows, is cut back, ends in half a line; names that lead out.
"""

import contextlib
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeGuard

from headwise.errors import DataError, HeadwiseError, UsageError
from headwise.settings.reading import read_settings_file
from headwise.storage import read_json

LOG = "log.jsonl"
MAX_RUNS, MAX_ENTRIES, MAX_DEPTH = 200, 4000, 3
MAX_BYTES = 4 << 20
"""Read at one call; the rest comes with the next."""
MAX_LINES = 2000
MAX_FIELDS = 40
MAX_NAME = 300


@dataclass(frozen=True)
class RunEntry:
    """A run as the list shows it."""

    name: str
    task: str | None
    model: str | None
    changed: float
    """When its log was last written, in seconds since 1970."""
    size: int
    finished: bool
    scores: dict[str, float]
    """What it reached in the end: BLEU of the test set, perplexity …"""

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class RunPart:
    """Lines from a byte on; asking again with `offset` goes on where this ended."""

    name: str
    lines: list[dict[str, Any]]
    offset: int
    restarted: bool
    finished: bool
    more: bool
    """There is more to read at once."""
    seconds_since_change: float

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def list_runs(root: Path) -> list[RunEntry]:
    """Runs at most three levels below, newest first; a directory that is a run is not searched for others."""
    found = [_entry(root, path) for path in _find(root.resolve())]
    return sorted(found, key=lambda run: (-run.changed, run.name))


def _find(root: Path) -> Iterator[Path]:
    waiting, seen, given = [(root, 0)], 0, 0
    while waiting and given < MAX_RUNS:
        path, depth = waiting.pop(0)
        if (path / LOG).is_file() and (path / LOG).resolve().is_relative_to(root):
            given += 1
            yield path
            continue
        if depth >= MAX_DEPTH:
            continue
        children: list[Path] = []
        with contextlib.suppress(OSError):
            children = sorted(islice(path.iterdir(), MAX_ENTRIES - seen))
        seen += len(children)
        for child in children:
            if not child.name.startswith(".") and child.is_dir() and child.resolve().is_relative_to(root):
                waiting.append((child, depth + 1))


def _entry(root: Path, path: Path) -> RunEntry:
    status = (path / LOG).stat()
    task, kind = None, None
    with contextlib.suppress(HeadwiseError, OSError):  # a run without a readable recipe still has a log to look at
        task, kind = _read_kinds(path / "recipe.yaml", (path / "recipe.yaml").stat().st_mtime_ns)
    return RunEntry(
        path.relative_to(root.resolve()).as_posix(),
        task,
        kind,
        status.st_mtime,
        status.st_size,
        (path / "model" / "MANIFEST.json").is_file(),
        _scores(path / "model" / "results.json"),
    )


@lru_cache(maxsize=2 * MAX_RUNS)
def _read_kinds(path: Path, changed: int) -> tuple[str | None, str | None]:
    """Task and model of a recipe, read once for each time it was written: the list is asked for again and again."""
    recipe = read_settings_file(path)
    model = recipe.get("model")
    kind = model.get("kind") if isinstance(model, dict) else None
    return str(recipe.get("task", "translation"))[:40], None if kind is None else str(kind)[:40]


def _scores(path: Path) -> dict[str, float]:
    """Numbers of results.json, one or two levels deep: `test.bleu`, `valid.perplexity`, `perplexity`."""
    try:
        results = read_json(path)
    except (HeadwiseError, OSError):
        return {}
    scores: dict[str, float] = {}
    for name, value in results.items() if isinstance(results, dict) else ():
        parts = value.items() if isinstance(value, dict) else ()
        for part, inner in parts:
            number = inner.get("value") if isinstance(inner, dict) else inner
            if _is_number(number):
                scores[f"{name}.{part}"[:60]] = float(number)
        if _is_number(value):
            scores[str(name)[:60]] = float(value)
    return dict(list(scores.items())[:MAX_FIELDS])


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def find_run(root: Path, name: str) -> Path:
    """The directory of a run by the name the list gives."""
    inside = root.resolve()
    if len(name) <= MAX_NAME and "\0" not in name:
        path = (inside / name).resolve()
        log = (path / LOG).resolve()
        if path.is_relative_to(inside) and log.is_relative_to(inside) and log.is_file():
            return path
    raise UsageError(
        f"there is no run {name[:80]!r} here; ask for the list and give one of its names",
        f"这里没有运行 {name[:80]!r}；请先取列表，再给出其中的名字",
    )


def read_run(root: Path, name: str, *, after: int = 0) -> RunPart:
    """What the log holds from byte `after` on, whole lines only."""
    path = find_run(root, name)
    try:
        size = (path / LOG).stat().st_size
        restarted = after > size
        start = 0 if restarted else after
        with (path / LOG).open("rb") as file:
            file.seek(start)
            content = file.read(MAX_BYTES)
        changed = (path / LOG).stat().st_mtime
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror}); is the run still there?",
            f"无法读取（{error.strerror}）；该运行还在吗？",
            file=path / LOG,
        ) from error
    end = content.rfind(b"\n") + 1
    lines = [line for text in content[:end].split(b"\n") if (line := _parse(text)) is not None]
    return RunPart(
        name,
        thin(lines),
        start + end,
        restarted,
        (path / "model" / "MANIFEST.json").is_file(),
        start + len(content) < size and end > 0,
        max(0.0, time.time() - changed),
    )


def _parse(text: bytes) -> dict[str, Any] | None:
    """Its kind, step and numbers; anything else of a line is nobody's curve."""
    try:
        line = json.loads(text) if text.strip() else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or not isinstance(line.get("step"), int):
        return None
    numbers = {str(name)[:40]: value for name, value in line.items() if _is_number(value)}
    return {"kind": str(line.get("kind"))[:20], **dict(list(numbers.items())[:MAX_FIELDS])}


def thin(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most `MAX_LINES` of each kind, evenly spread, the last one always kept."""
    kept: set[int] = set()
    for kind in {line["kind"] for line in lines}:
        places = [place for place, line in enumerate(lines) if line["kind"] == kind]
        every = -(-len(places) // MAX_LINES)
        kept.update(places[len(places) - 1 :: -every])
    return [line for place, line in enumerate(lines) if place in kept]
