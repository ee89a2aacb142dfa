"""Every attention kernel at growing lengths: the work behind `headwise compare attention`.

Each kernel goes up the lengths until it would not fit: memory and time of the next length are foretold from the last two (at worst
the square), and what would not fit is left out with the reason. After every point the table is saved, so a second call goes on where
the first ended. The slope of a kernel is the exponent a of time ∝ lengthᵃ, a straight line through logarithms from 4,096 up (of fewer than two
such lengths, through the last three): 1 for a linear kernel, 2 for a quadratic one.

Tested with a fake clock whose slopes are known, and with every kernel once at toy size.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from headwise.attention.choices import AttentionSettings
from headwise.errors import HeadwiseError, UsageError
from headwise.language import say
from headwise.planning.available import available_memory
from headwise.storage import read_json, write_json, write_text
from headwise.tasks.attention_points import Conditions, Point, measure_point
from headwise.tasks.events import Events, Silence
from headwise.tasks.machine import describe_machine

LENGTHS = {"cpu": (512, 1024, 2048, 4096), "cuda": tuple(512 << power for power in range(8))}
SLOPE_FROM = 4096
MAX_SECONDS = {"cpu": 10.0, "cuda": 10.0}
"""A single run foretold to take longer is left out."""
MEMORY_SHARE = 0.9
FILE = "attention.json"
MIB = 1 << 20
MAX_REASON = 200

Measure = Callable[[str, AttentionSettings, int, Conditions], Point]


@dataclass(frozen=True)
class AttentionComparison:
    """The points measured, kernel by kernel."""

    directory: Path
    conditions: Conditions
    machine: Mapping[str, Any]
    points: tuple[Point, ...]

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(point.kernel for point in self.points))

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(sorted({point.length for point in self.points}))

    def of(self, kernel: str) -> list[Point]:
        return sorted((point for point in self.points if point.kernel == kernel), key=lambda point: point.length)

    @property
    def slope_from(self) -> int:
        """Short lengths are ruled by what does not grow; a CPU's, which end early, cannot all be left out."""
        long = [length for length in self.lengths if length >= SLOPE_FROM]
        return SLOPE_FROM if len(long) >= 2 else self.lengths[-3:][0]

    def slope(self, kernel: str, what: str) -> float | None:
        """The exponent of `forward_seconds`, `both_seconds` or `memory_mib` over length, from `slope_from` up."""
        known = [(point.length, getattr(point, what)) for point in self.of(kernel) if point.length >= self.slope_from]
        return fit_slope([(length, value) for length, value in known if value])

    def as_dict(self) -> dict[str, Any]:
        slopes = {
            name: {what: self.slope(name, what) for what in ("forward_seconds", "both_seconds", "memory_mib")}
            for name in self.kernels
        }
        return {
            "machine": dict(self.machine),
            "conditions": asdict(self.conditions),
            "slope_from": self.slope_from,
            "slopes": slopes,
            "points": [point.as_dict() for point in self.points],
        }


def fit_slope(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Through the logarithms of (size, cost); None from fewer than two points. A cost that is not above zero was too small to measure."""
    pairs = [(size, cost) for size, cost in pairs if cost > 0]
    if len(pairs) < 2:
        return None
    sizes, costs = np.log(np.array(pairs, dtype=np.float64)).T
    return float(np.polyfit(sizes, costs, 1)[0])


def known_kernels() -> dict[str, AttentionSettings]:
    """Every kind a recipe may name, with its default settings."""
    kinds = get_args(get_args(AttentionSettings)[0])
    return {kind.model_fields["kind"].default: kind() for kind in kinds}


def suited(settings: AttentionSettings, length: int) -> AttentionSettings:
    """A kernel that knows lengths up to a limit is given the one it is measured at."""
    limits = [name for name in ("max_length", "length") if name in type(settings).model_fields]
    return settings.model_copy(update=dict.fromkeys(limits, length))


def compare_attention(
    kernels: Mapping[str, AttentionSettings],
    *,
    lengths: Sequence[int],
    conditions: Conditions,
    directory: Path | str,
    events: Events | None = None,
    measure: Measure = measure_point,
) -> AttentionComparison:
    """Measure what is not measured yet; the table is written after every point."""
    place, watcher = Path(directory), events or Silence()
    if not lengths or min(lengths) < 1:
        raise UsageError(
            f"lengths {list(lengths)} are not usable; give whole numbers from 1 on: --lengths 512,1024",
            f"长度 {list(lengths)} 不可用；请给出从 1 起的整数：--lengths 512,1024",
        )
    found = _read_points(place / FILE, conditions)
    machine = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        **describe_machine(torch.device(conditions.device)),
    }
    total, done = len(kernels) * len(lengths), 0
    for name, settings in kernels.items():
        for length in sorted(set(lengths)):
            done += 1
            if (name, length) not in found:
                watcher.count(say(f"{name} at {length:,}", f"{name}，长度 {length:,}"), done - 1, total)
                before = [point for point in found.values() if point.kernel == name and point.length < length]
                found[name, length] = _one_point(name, settings, length, conditions, before, measure)
                result = AttentionComparison(place, conditions, machine, tuple(found.values()))
                _write(result)
    watcher.count(say("points", "测点"), total, total)
    result = AttentionComparison(place, conditions, machine, tuple(found.values()))
    _write(result)
    return result


def _one_point(
    name: str,
    settings: AttentionSettings,
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
    except RuntimeError as error:  # torch's own: one point must not take the others with it
        why = str(error).strip().partition("\n")[0][:MAX_REASON]
        if not conditions.compiled:
            return Point(name, length, skipped=why)
        plain = _one_point(name, settings, length, replace(conditions, compiled=False), before, measure)
        return replace(plain, remark=say(f"not compiled: {why}", f"未编译：{why}"))


def will_not_fit(length: int, before: Sequence[Point], conditions: Conditions) -> str | None:
    """Foretold from the last two lengths; None when it should fit, or nothing is known yet."""
    known = sorted((point for point in before if point.skipped is None), key=lambda point: point.length)
    if not known:
        return None
    seconds = _foretell([(point.length, point.both_seconds) for point in known], length)
    memory = _foretell([(point.length, point.memory_mib) for point in known], length)
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


def _foretell(known: Sequence[tuple[int, float | None]], length: int) -> float | None:
    pairs = [(size, value) for size, value in known if value is not None and value > 0][-2:]
    if not pairs:
        return None
    slope = fit_slope(pairs) if len(pairs) > 1 else 2.0
    size, value = pairs[-1]
    return value * (length / size) ** min(max(slope or 0.0, 0.0), 2.5)


def _read_points(path: Path, conditions: Conditions) -> dict[tuple[str, int], Point]:
    """What an earlier call measured under the same conditions; under others it is refused with what differs."""
    if not path.exists():
        return {}
    saved = read_json(path)
    before, now = saved["conditions"], asdict(conditions)
    differing = [f"{key}: {before.get(key)} → {now[key]}" for key in now if before.get(key) != now[key]]
    if differing:
        raise UsageError(
            f"holds points measured under other conditions ({', '.join(differing)}); give another --directory",
            f"其中的测点条件不同（{'，'.join(differing)}）；请另给 --directory",
            file=path,
        )
    return {(point["kernel"], point["length"]): Point(**point) for point in saved["points"]}


def _write(result: AttentionComparison) -> None:
    result.directory.mkdir(parents=True, exist_ok=True)
    write_json(result.directory / FILE, result.as_dict())
    write_text(result.directory / "attention.md", as_markdown(result))


TABLES = (
    ("forward_seconds", 1000.0, "forward, ms", "前向，毫秒"),
    ("both_seconds", 1000.0, "forward + backward, ms", "前向 + 反向，毫秒"),
    ("memory_mib", 1.0, "peak memory, MiB", "内存峰值，MiB"),
    ("distance", 1.0, "distance from exact attention", "与精确注意力的距离"),
)


def tables(result: AttentionComparison) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Title, headings and rows of each: kernels down, lengths across, the slope last."""
    found = []
    for what, factor, en, zh in TABLES:
        headings = (say("kernel", "核"), *(f"{length:,}" for length in result.lengths), say("slope", "斜率"))
        rows = []
        for name in result.kernels:
            points = {point.length: point for point in result.of(name)}
            cells = [_cell(points.get(length), what, factor) for length in result.lengths]
            slope = None if what == "distance" else result.slope(name, what)
            rows.append((name, *cells, "–" if slope is None else f"{slope:.2f}"))
        found.append((say(en, zh), headings, rows))
    return found


def _cell(point: Point | None, what: str, factor: float) -> str:
    value = None if point is None else getattr(point, what)
    if value is None or not math.isfinite(value):
        return "–"
    return f"{factor * value:,.3g}" if factor * value < 1000 else f"{factor * value:,.0f}"


def remarks(result: AttentionComparison) -> list[str]:
    """How to read the table, and why points are missing."""
    lines = [
        say(
            f"Slopes are exponents of length from {result.slope_from:,} up. Distances are on normal random numbers, where nothing is alike or near: they "
            "tell how well softmax is approximated at its hardest, not how well a model trained with the kernel works. reformer is compared with "
            "exact attention of shared queries and keys, which it approximates.",
            f"斜率为长度自 {result.slope_from:,} 起的指数。距离在正态随机数上测得，其中没有相似或相邻的结构：它表示在最难的情形下对 softmax 的近似程度，"
            "而不是用该核训练的模型效果如何。reformer 与共用查询和键的精确注意力比较，那正是它所近似的。",
        )
    ]
    for point in result.points:
        if point.skipped:
            why = f"{point.kernel}, {point.length:,}: {point.skipped}"
            lines.append(say(f"left out: {why}", f"略去：{why}"))
        if point.remark:
            lines.append(f"{point.kernel}, {point.length:,}: {point.remark}")
    return lines


def as_markdown(result: AttentionComparison) -> str:
    """The tables for a report."""
    lines = []
    for title, headings, rows in tables(result):
        lines += [f"**{title}**", ""]
        lines += [f"| {' | '.join(row)} |" for row in (headings, tuple("---" for _ in headings), *rows)] + [""]
    facts = {**result.machine, **asdict(result.conditions)}
    lines += [f"- {line}" for line in (*remarks(result), " · ".join(f"{key} {value}" for key, value in facts.items()))]
    return "\n".join(lines) + "\n"
