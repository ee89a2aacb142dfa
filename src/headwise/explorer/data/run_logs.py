"""Lists the runs under a directory, and reads the new lines of their logs.

    runs/mine/log.jsonl      one JSON object a line (training/log_file.py); lines are written whole
    runs/mine/model/         exists when the run is finished; results.json holds its scores

`read_run` continues from a byte offset, so a page that watches a run receives only new lines. If a
log has become shorter, a resumed run has truncated it, and it is read from its beginning
(`restarted`). Names are paths below the directory; a name that leads out of it, by .. or by a link,
is not found. Long logs are thinned to at most `MAX_LINES` lines of each kind. The files are not
trusted (untrusted_files.py): runs that cannot be read are left out, and lines that are too long are
skipped.

Tested against: a log that grows, is truncated, or ends in half a line; names that lead out; damaged
runs of every kind.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any

from headwise.errors import DataError, HeadwiseError, UsageError
from headwise.explorer.data.untrusted_files import (
    is_file_inside,
    is_sendable,
    lies_inside,
    number_of,
    open_inside,
    read_inside,
    read_json_inside,
    text_of,
)
from headwise.settings.kind import by_language
from headwise.settings.reading import DEFAULT_TASK, read_yaml
from headwise.tasks.declared_results import Results
from headwise.tasks.result_rows import EVERY_RUN
from headwise.tasks.table import find_entry

LOG = "log.jsonl"
MAX_RUNS, MAX_ENTRIES, MAX_DEPTH = 200, 4000, 3
MAX_BYTES = 4 << 20
"""The most bytes of one call; the next call reads on. Longer lines are skipped."""
MAX_RECIPE_BYTES, MAX_RESULTS_BYTES = 1 << 16, 1 << 18
RECIPE_SECONDS = 2.0
"""Seconds for reading recipes in one call; the next call reads the rest."""
MAX_KINDS = 8
MAX_LINES = 2000
MAX_FIELDS = 40
MAX_NAME = 300


@dataclass(frozen=True)
class RunEntry:
    """A run in the list."""

    name: str
    task: str | None
    model: str | None
    changed: float
    """When the log was last written, in seconds since 1970."""
    size: int
    finished: bool
    scores: dict[str, float]
    """The final scores: BLEU of the test set, perplexity …"""

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class LogPart:
    """Lines of a log from a byte offset on; the next call continues at `offset`."""

    name: str
    lines: list[dict[str, Any]]
    offset: int
    restarted: bool
    finished: bool
    more: bool
    """Whether more can be read at once."""
    seconds_since_change: float

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def list_runs(root: Path) -> list[RunEntry]:
    """Runs at most three levels below the directory, newest first. A run directory is not searched
    for other runs.
    """
    inside = root.resolve()
    until = time.monotonic() + RECIPE_SECONDS
    found = [
        run for path in _find(inside) if (run := _entry(inside, path, until=until)) is not None
    ]
    return sorted(found, key=lambda run: (-run.changed, run.name))


def _find(root: Path) -> Iterator[Path]:
    waiting, seen, given = [(root, 0)], 0, 0
    while waiting and given < MAX_RUNS:
        path, depth = waiting.pop(0)
        if is_file_inside(root, path / LOG):
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
            if child.name.startswith(".") or not is_sendable(child.name):
                continue
            with contextlib.suppress(OSError):
                if child.is_dir() and lies_inside(root, child):
                    waiting.append((child, depth + 1))


def _entry(root: Path, path: Path, *, until: float) -> RunEntry | None:
    """A run as it is now, or None if it has disappeared since it was found."""
    try:
        status = (path / LOG).stat()
    except OSError:
        return None
    task, kind = None, None
    with contextlib.suppress(OSError):  # a run without a readable recipe still has a log to look at
        recipe = path / "recipe.yaml"
        changed = recipe.stat().st_mtime_ns
        if time.monotonic() < until:
            task, kind = _read_kinds(root, recipe, changed)
    return RunEntry(
        path.relative_to(root).as_posix(),
        task,
        kind,
        status.st_mtime,
        status.st_size,
        is_file_inside(root, path / "model" / "MANIFEST.json"),
        _scores(root, path / "model" / "results.json"),
    )


@lru_cache(maxsize=2 * MAX_RUNS)
def _read_kinds(root: Path, path: Path, changed: int) -> tuple[str | None, str | None]:
    """Task and model of a recipe, cached by its modification time because the list is requested
    often.
    """
    try:
        recipe = read_yaml(read_inside(root, path, max_bytes=MAX_RECIPE_BYTES).decode("utf-8-sig"))
        if not isinstance(recipe, dict):
            return None, None
        model = recipe.get("model")
        kind = model.get("kind") if isinstance(model, dict) else None
        return text_of(recipe.get("task", DEFAULT_TASK), 40), None if kind is None else text_of(
            kind, 40
        )
    except (HeadwiseError, OSError, ValueError, RecursionError):
        return None, None


def _scores(root: Path, path: Path) -> dict[str, float]:
    """Numbers of results.json, one or two levels deep: `test.bleu`, `valid.perplexity`,
    `perplexity`.
    """
    try:
        results = read_json_inside(root, path, max_bytes=MAX_RESULTS_BYTES)
    except (OSError, ValueError):
        return {}
    scores: dict[str, float] = {}
    for name, value in results.items() if isinstance(results, dict) else ():
        for part, inner in value.items() if isinstance(value, dict) else ():
            number = number_of(inner.get("value") if isinstance(inner, dict) else inner)
            if number is not None:
                scores[text_of(f"{name}.{part}", 60)] = float(number)
        if (number := number_of(value)) is not None:
            scores[text_of(name, 60)] = float(number)
    return dict(list(scores.items())[:MAX_FIELDS])


def declared_tasks(runs: Iterable[RunEntry]) -> dict[str, dict[str, Any]]:
    """What the tasks of these runs declare: names of the task, its metrics and its other numbers.

    A task of a package that is not installed, or that is broken, is left out.
    """
    found = {}
    for word in sorted({run.task for run in runs if run.task is not None}):
        with contextlib.suppress(HeadwiseError):
            entry = find_entry(word)
            if entry is not None:
                found[word] = {
                    "title": by_language(entry.name),
                    "metrics": _as_dicts(entry.recipe_type.metrics),
                    "results": _as_dicts({**EVERY_RUN, **entry.recipe_type.results}),
                }
    return found


def _as_dicts(declared: Results) -> dict[str, dict[str, Any]]:
    return {key: one.as_dict() for key, one in declared.items()}


class NoRunError(UsageError):
    """There is no run of that name."""


def find_run(root: Path, name: str) -> Path:
    """The directory of a run, by its name in the list."""
    inside = root.resolve()
    if len(name) <= MAX_NAME and "\0" not in name and is_sendable(name):
        path = Path(os.path.realpath(inside / name))
        if path.is_relative_to(inside) and is_file_inside(inside, path / LOG):
            return path
    raise NoRunError(
        "there is no run of that name here; ask for the list and give one of its names",
        "这里没有该名称的运行；请先取列表，再给出其中的名字",
    )


def read_run(root: Path, name: str, *, after: int = 0) -> LogPart:
    """The whole lines of the log from byte `after` on."""
    path = find_run(root, name)
    try:
        with open_inside(root, path / LOG) as file:
            status = os.fstat(file.fileno())
            restarted = after > status.st_size
            start = 0 if restarted else after
            file.seek(max(0, start - 1))
            # The offset may lie inside a line that was too long to read; its rest is skipped.
            is_within_line = start > 0 and file.read(1) != b"\n"
            content = file.read(MAX_BYTES)
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror}); is the run still there?",
            f"无法读取（{error.strerror}）；该运行还在吗？",
            file=path / LOG,
        ) from error
    end = content.rfind(b"\n") + 1
    texts = content[:end].split(b"\n")[1 if is_within_line else 0 :]
    lines = [line for text in texts if (line := _parse(text)) is not None]
    if not end and len(content) == MAX_BYTES:
        end = len(content)  # one line that does not end
    return LogPart(
        name,
        thin(lines),
        start + end,
        restarted,
        is_file_inside(root, path / "model" / "MANIFEST.json"),
        start + len(content) < status.st_size and end > 0,
        max(0.0, time.time() - status.st_mtime),
    )


def _parse(text: bytes) -> dict[str, Any] | None:
    """Kind, step and numbers of a line; other values are not drawn."""
    try:
        line = json.loads(text) if text.strip() else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict) or not isinstance(number_of(line.get("step")), int):
        return None
    kind = line.pop("kind", None)
    step = line.pop("step")
    numbers = ((text_of(name, 40), number_of(value)) for name, value in line.items())
    told = islice(((name, number) for name, number in numbers if number is not None), MAX_FIELDS)
    return {
        **dict(told),
        "kind": text_of(kind, 20) if isinstance(kind, str) else "other",
        "step": step,
    }


def thin(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most `MAX_LINES` of each of the first `MAX_KINDS` kinds, evenly spaced; the last one is
    always kept.
    """
    places: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        if line["kind"] in places or len(places) < MAX_KINDS:
            places.setdefault(line["kind"], []).append(place)
    kept = sorted(
        place for some in places.values() for place in some[:: -ceil(len(some) / MAX_LINES)]
    )
    return [lines[place] for place in kept]
