"""Estimates the remaining time of `headwise compare attention` from the points measured so far.

    time of a point = repeated(forward) + repeated(forward + backward) + other work

Calls are repeated for about a second. Their time at the next length is extrapolated from shorter
ones; a kernel without measurements is expected to take the mean of the others. The other work
(building, comparing with exact attention, compiling on a GPU) is expected to take its mean so far.

Tested with points that take known times.
"""

import statistics
from collections.abc import Iterable, Sequence

from headwise.comparing.attention_measurement import Point, repeated_seconds
from headwise.comparing.attention_table import fit_slope

STEEPEST = 2.5
"""The largest slope: no kernel is steeper, but a line through two noisy points may be."""


def extrapolate(known: Sequence[tuple[int, float | None]], length: int) -> float | None:
    """The cost at a length, on the line through the last two known costs in logarithms; quadratic
    if only one is known.
    """
    pairs = [(size, value) for size, value in known if value is not None and value > 0][-2:]
    if not pairs:
        return None
    slope = fit_slope(pairs) if len(pairs) > 1 else 2.0
    size, value = pairs[-1]
    return value * (length / size) ** min(max(slope or 0.0, 0.0), STEEPEST)


class TimeLeft:
    """The times of measured points, and estimates for the others. A call longer than `longest` is
    left out and takes no time.
    """

    def __init__(self, points: Iterable[Point], *, longest: float) -> None:
        self._points = [point for point in points if point.skipped is None]
        self._around: list[float] = []
        self._longest = longest

    def add(self, point: Point, seconds: float) -> None:
        """Add a measured point and the time it took."""
        if point.skipped is None:
            self._points.append(point)
            self._around.append(max(0.0, seconds - self._calls(point.kernel, point.length)))

    def left(self, remaining: Iterable[tuple[str, int]]) -> float | None:
        """The expected seconds for these points; None if nothing was measured yet."""
        if not self._points:
            return None
        names = {point.kernel for point in self._points}
        total = 0.0
        for name, length in remaining:
            known = [name] if name in names else sorted(names)
            total += statistics.fmean(self._expect(one, length) for one in known)
        return total

    def _expect(self, name: str, length: int) -> float:
        calls = self._calls(name, length)
        return calls + statistics.fmean(self._around or [0.0]) if calls else 0.0

    def _calls(self, name: str, length: int) -> float:
        own = sorted(
            (p for p in self._points if p.kernel == name and p.length <= length),
            key=lambda p: p.length,
        )
        forward = (
            extrapolate([(point.length, point.forward_seconds) for point in own], length) or 0.0
        )
        both = extrapolate([(point.length, point.both_seconds) for point in own], length) or 0.0
        return 0.0 if both > self._longest else repeated_seconds(forward) + repeated_seconds(both)
