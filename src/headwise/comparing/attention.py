"""Measures every attention kernel at growing lengths, for `headwise compare attention`.

A kernel is measured until the next length would not fit into memory or time. Both are extrapolated
from the last two lengths (quadratically if there is only one); a length that would not fit is left
out with the reason. If the first length has a large table of scores, shorter lengths are tried
before it. The table is saved after every point, so a second call continues where the first one
ended and tries again what was left out.

Tested with a fake clock, and with every kernel once at toy size.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from headwise.attention.capabilities import AttentionKind
from headwise.attention.choices import attention_kinds
from headwise.comparing.attention_measurement import Conditions, Point, measure_point
from headwise.comparing.attention_table import AttentionComparison, as_markdown
from headwise.comparing.attention_time_left import TimeLeft, extrapolate
from headwise.errors import CheckpointError, HeadwiseError, UsageError
from headwise.language import clock, say
from headwise.planning.available_memory import available_memory
from headwise.storage import read_json, write_json, write_text
from headwise.tasks.events import Events, Silence
from headwise.tasks.machine import describe_machine

LENGTHS = {"cpu": (512, 1024, 2048, 4096), "cuda": tuple(512 << power for power in range(8))}
MAX_SECONDS = {"cpu": 10.0, "cuda": 10.0}
"""A length is left out if a single call is expected to take longer."""
MEMORY_SHARE = 0.9
HARMLESS = 1 << 28
"""The largest number of scores (1 GiB in fp32) that is formed without trying a shorter length."""
SHARES = (64, 16, 4)
"""The fractions (1/64 …) of a larger first length that are tried before it."""
FILE = "attention.json"
MAX_LENGTH = 1 << 24
MIB = 1 << 20
MAX_REASON = 200

Measure = Callable[[str, AttentionKind, int, Conditions], Point]


def known_kernels() -> dict[str, AttentionKind]:
    """Every kind that a recipe may name, including those of installed packages, with default
    settings; with those of its example where not every setting has a default.
    """
    return {
        word: kind.example()
        if any(field.is_required() for field in kind.model_fields.values())
        else kind.model_validate({})
        for word, kind in attention_kinds().items()
    }


def suited(settings: AttentionKind, length: int) -> AttentionKind:
    """A kernel with a maximum length gets the length it is measured at."""
    return settings.fit_length(length)


def compare_attention(
    kernels: Mapping[str, AttentionKind],
    *,
    lengths: Sequence[int],
    conditions: Conditions,
    directory: Path | str,
    events: Events | None = None,
    measure: Measure = measure_point,
) -> AttentionComparison:
    """Measure the missing points; the table is written after every point."""
    place, watcher = Path(directory), events or Silence()
    if not lengths or not 1 <= min(lengths) <= max(lengths) <= MAX_LENGTH:
        raise UsageError(
            f"lengths {list(lengths)} are not usable; give whole numbers from 1 to "
            f"{MAX_LENGTH:,}: --lengths 512,1024",
            f"长度 {list(lengths)} 不可用；请给出 1 到 {MAX_LENGTH:,} 的整数：--lengths 512,1024",
        )
    lengths = sorted(set(lengths))
    found = _read_points(place / FILE, conditions)
    _check_writable(place)
    machine = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        **describe_machine(torch.device(conditions.device)),
    }
    total = [(name, length) for name in kernels for length in lengths]
    remaining = [one for one in total if one not in found or found[one].skipped is not None]
    time_left = TimeLeft(found.values(), longest=MAX_SECONDS[conditions.device])
    tried: dict[str, list[Point]] = {}
    while remaining:
        name, length = remaining[0]
        watcher.count(
            _describe(name, length, time_left.left(remaining)),
            len(total) - len(remaining),
            len(total),
        )
        began = time.monotonic()
        before = _measured(found.values(), name, length)
        if not before:
            if name not in tried:
                tried[name] = _try_shorter(name, kernels[name], length, conditions, measure)
            before = tried[name]
        found[name, length] = _one_point(name, kernels[name], length, conditions, before, measure)
        time_left.add(found[name, length], time.monotonic() - began)
        remaining.pop(0)
        _write(AttentionComparison(place, conditions, machine, tuple(found.values())))
    watcher.count(say("points", "测点"), len(total), len(total))
    result = AttentionComparison(place, conditions, machine, tuple(found.values()))
    _write(result)
    return result


def _describe(name: str, length: int, seconds: float | None) -> str:
    left = clock(seconds)
    return say(
        f"{name} at {length:,}, about {left} left; points",
        f"{name}，长度 {length:,}，约剩 {left}；测点",
    )


def _measured(points: Iterable[Point], name: str, length: int) -> list[Point]:
    return [
        point
        for point in points
        if point.kernel == name and point.length < length and point.skipped is None
    ]


def _try_shorter(
    name: str, settings: AttentionKind, length: int, conditions: Conditions, measure: Measure
) -> list[Point]:
    """Points at shorter lengths that stand in no table: they show whether the first length fits
    into memory.
    """
    tried: list[Point] = []
    if conditions.batch * conditions.heads * length**2 <= HARMLESS:
        return tried
    for share in SHARES:
        point = _one_point(name, settings, max(1, length // share), conditions, tried, measure)
        if point.skipped is not None:
            break
        tried.append(point)
    return tried


def _one_point(
    name: str,
    settings: AttentionKind,
    length: int,
    conditions: Conditions,
    before: Sequence[Point],
    measure: Measure,
) -> Point:
    reason = will_not_fit(length, before, conditions)
    if reason is not None:
        return Point(name, length, skipped=reason)
    try:
        return measure(name, suited(settings, length), length, conditions)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return Point(name, length, skipped=say("ran out of memory", "内存不足"))
    except HeadwiseError as error:
        return Point(name, length, skipped=str(error))
    except RuntimeError as error:  # errors of torch: one failing point must not end the others
        why = str(error).strip().partition("\n")[0][:MAX_REASON]
        if not conditions.compiled:
            return Point(name, length, skipped=why)
        plain = _one_point(
            name, settings, length, replace(conditions, compiled=False), before, measure
        )
        return replace(plain, remark=say(f"not compiled: {why}", f"未编译：{why}"))


def will_not_fit(length: int, before: Sequence[Point], conditions: Conditions) -> str | None:
    """Why the next length is left out, extrapolated from the last two; None if it should fit."""
    known = sorted(
        (point for point in before if point.skipped is None), key=lambda point: point.length
    )
    if not known:
        return None
    seconds = extrapolate([(point.length, point.both_seconds) for point in known], length)
    memory = extrapolate([(point.length, point.memory_mib) for point in known], length)
    free = available_memory(torch.device(conditions.device))
    if memory is not None and free is not None and memory * MIB > MEMORY_SHARE * free:
        need, have = memory / 1024, free / MIB / 1024
        return say(
            f"would need about {need:,.1f} GiB of memory, {have:,.1f} are free",
            f"约需 {need:,.1f} GiB 内存，可用 {have:,.1f}",
        )
    if seconds is not None and seconds > MAX_SECONDS[conditions.device]:
        return say(f"one run would take about {seconds:,.0f} s", f"一次约需 {seconds:,.0f} 秒")
    return None


def _read_points(path: Path, conditions: Conditions) -> dict[tuple[str, int], Point]:
    """The points of an earlier call; other conditions are refused, naming the difference."""
    if not path.exists():
        return {}
    try:
        saved = read_json(path)
        before, now = dict(saved["conditions"]), asdict(conditions)
        points = {
            (point.kernel, point.length): point for point in map(_read_point, saved["points"])
        }
    except (CheckpointError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            "is damaged, or not a table that `headwise compare attention` wrote; move it away, or "
            "give another --directory",
            "已损坏，或不是 `headwise compare attention` 写的表；请移走它，或另给 --directory",
            file=path,
        ) from error
    differing = [
        f"{key}: {before.get(key)!r} → {now[key]!r}" for key in now if before.get(key) != now[key]
    ]
    if differing:
        raise UsageError(
            f"holds points measured under other conditions ({', '.join(differing)}); give another "
            "--directory",
            f"其中的测点条件不同（{'，'.join(differing)}）；请另给 --directory",
            file=path,
        )
    return points


def _read_point(entry: dict[str, Any]) -> Point:
    """A point from JSON; ValueError or TypeError if no measurement can have written it."""
    point = Point(**entry)
    numbers = (point.forward_seconds, point.both_seconds, point.memory_mib, point.distance)
    texts = (point.skipped, point.remark)
    if (
        not isinstance(point.kernel, str)
        or type(point.length) is not int
        or not 1 <= point.length <= MAX_LENGTH
        or any(number is not None and not 0 <= float(number) < math.inf for number in numbers)
        or any(text is not None and not isinstance(text, str) for text in texts)
    ):
        raise ValueError(point)
    return point


def _check_writable(place: Path) -> None:
    """Write into the directory before the first point is measured: permissions alone do not show
    a full or read-only disk.
    """
    place.mkdir(parents=True, exist_ok=True)
    probe = place / f"{FILE}.probe"
    write_text(probe, "")
    probe.unlink()


def _write(result: AttentionComparison) -> None:
    write_json(result.directory / FILE, result.as_dict())
    write_text(result.directory / "attention.md", as_markdown(result))
