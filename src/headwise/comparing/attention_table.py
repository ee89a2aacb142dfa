"""Makes the tables of `headwise compare attention`: kernels as rows, lengths as columns, and the
slopes.

The slope of a kernel is the exponent a of cost ∝ lengthᵃ: a line fitted to the logarithms from
length 4,096 on, or to the last three lengths if fewer than two are that long. It is 1 for a linear
kernel and 2 for a quadratic one.

Tested with points whose slopes are known.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headwise.attention.choices import attention_kinds
from headwise.comparing.attention_measurement import Conditions, Point
from headwise.language import say

SLOPE_FROM = 4096


@dataclass(frozen=True)
class AttentionComparison:
    """The measured points of every kernel."""

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
        return sorted(
            (point for point in self.points if point.kernel == kernel),
            key=lambda point: point.length,
        )

    @property
    def slope_from(self) -> int:
        """The first length of the fit: constant costs dominate short lengths, but a CPU has only
        short ones.
        """
        long = [length for length in self.lengths if length >= SLOPE_FROM]
        return SLOPE_FROM if len(long) >= 2 else self.lengths[-3:][0]

    def slope(self, kernel: str, what: str) -> float | None:
        """The exponent of `forward_seconds`, `both_seconds` or `memory_mib` over length, from
        `slope_from` up.
        """
        known = [
            (point.length, getattr(point, what))
            for point in self.of(kernel)
            if point.length >= self.slope_from
        ]
        return fit_slope([(length, value) for length, value in known if value])

    def as_dict(self) -> dict[str, Any]:
        slopes = {
            name: {
                what: self.slope(name, what)
                for what in ("forward_seconds", "both_seconds", "memory_mib")
            }
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
    """The slope of log cost over log size; None for fewer than two points. A cost that is not
    positive was too small to measure.
    """
    pairs = [(size, cost) for size, cost in pairs if cost > 0]
    if len(pairs) < 2:
        return None
    sizes, costs = np.log(np.array(pairs, dtype=np.float64)).T
    return float(np.polyfit(sizes, costs, 1)[0])


TABLES = (
    ("forward_seconds", 1000.0, "forward, ms", "前向，毫秒"),
    ("both_seconds", 1000.0, "forward + backward, ms", "前向 + 反向，毫秒"),
    ("memory_mib", 1.0, "peak memory, MiB", "内存峰值，MiB"),
    ("operations", 1e-9, "operations by the kernel's formula, 10⁹", "按内核公式的运算量，10⁹"),
    ("distance", 1.0, "distance from exact attention", "与精确注意力的距离"),
)


def tables(result: AttentionComparison) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Title, headings and rows of each table: kernels as rows, lengths as columns, slope last."""
    found = []
    for what, factor, en, zh in TABLES:
        headings = (
            say("kernel", "内核"),
            *(f"{length:,}" for length in result.lengths),
            say("slope", "斜率"),
        )
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
            f"Slopes are exponents of length from {result.slope_from:,} up. Distances are on "
            "normal random numbers, where nothing is alike or near: they tell how well softmax "
            "is approximated at its hardest, not how well a model trained with the kernel works.",
            f"斜率为长度自 {result.slope_from:,} 起的指数。距离在正态随机数上测得，"
            "其中没有相似或相邻的结构：它表示在最难的情形下对 softmax 的近似程度，"
            "而不是用该内核训练的模型效果如何。",
        )
    ]
    kinds = attention_kinds()
    for name in result.kernels:
        other = kinds[name].compared_with if name in kinds else None
        if other is not None:
            lines.append(say(f"{name} is compared with {other[0]}.", f"{name} 与{other[1]}比较。"))
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
        lines += [
            f"| {' | '.join(row)} |" for row in (headings, tuple("---" for _ in headings), *rows)
        ] + [""]
    facts = {**result.machine, **asdict(result.conditions)}
    lines += [
        f"- {line}"
        for line in (*remarks(result), " · ".join(f"{key} {value}" for key, value in facts.items()))
    ]
    return "\n".join(lines) + "\n"
