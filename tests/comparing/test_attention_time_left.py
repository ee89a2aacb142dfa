"""The time left, from points whose times are known."""

from pathlib import Path

import pytest

from headwise.attention.choices import AttentionSettings, Full, Fused
from headwise.comparing import attention
from headwise.comparing.attention import compare_attention
from headwise.comparing.attention_measurement import Conditions, Point, repeated_seconds
from headwise.comparing.attention_time_left import TimeLeft, extrapolate
from tests.tasks.translation.test_task import Watcher


def test_two_points_make_a_line_and_one_a_square() -> None:
    assert extrapolate([(10, 3.0)], 20) == pytest.approx(12.0)
    assert extrapolate([(10, 3.0), (20, 6.0)], 40) == pytest.approx(12.0)
    assert extrapolate([(10, None), (20, 0.0)], 40) is None
    assert extrapolate([(10, 1.0), (20, 100.0)], 40) == pytest.approx(100 * 2**2.5), (
        "no kernel is steeper"
    )


def test_short_calls_are_repeated_for_a_second_and_long_ones_a_few_times() -> None:
    assert repeated_seconds(0.5) == pytest.approx(6 * 0.5)
    assert repeated_seconds(2.0) == pytest.approx(4 * 2.0)
    assert repeated_seconds(0.001) == pytest.approx(33 * 0.001)


def test_what_is_left_is_the_sum_of_what_is_expected() -> None:
    left = TimeLeft([], longest=10.0)
    assert left.left([("full", 8)]) is None
    calls = repeated_seconds(0.5) + repeated_seconds(2.0)
    left.add(Point("full", 8, forward_seconds=0.5, both_seconds=2.0), calls + 7.0)
    at_sixteen = repeated_seconds(2.0) + repeated_seconds(8.0) + 7.0
    assert left.left([("full", 16)]) == pytest.approx(at_sixteen)
    assert left.left([("full", 16), ("other", 8)]) == pytest.approx(at_sixteen + calls + 7.0), (
        "like those it knows"
    )
    assert left.left([("full", 32)]) == 0.0, "foretold to be over the longest call: left out"
    left.add(Point("other", 8, skipped="no"), 1000.0)
    assert left.left([("full", 16)]) == pytest.approx(at_sixteen), "what is left out says nothing"
    assert left.left([]) == 0.0


def test_the_display_says_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(attention.time, "monotonic", lambda: now[0])

    def measure(
        name: str, settings: AttentionSettings, length: int, conditions: Conditions
    ) -> Point:
        now[0] += 60.0
        return Point(
            name, length, forward_seconds=1e-6, both_seconds=1e-6, memory_mib=1.0, distance=0.0
        )

    kernels: dict[str, AttentionSettings] = {"full": Full(), "fused": Fused()}
    conditions = Conditions("cpu", "fp32", heads=1, head_dim=4)
    watcher = Watcher()
    compare_attention(
        kernels,
        lengths=(5, 3),
        conditions=conditions,
        directory=tmp_path,
        events=watcher,
        measure=measure,
    )
    assert [(label.split("about ")[-1], done, total) for label, done, total in watcher.counts] == [
        ("– left; points", 0, 4),
        ("3:00 left; points", 1, 4),
        ("2:00 left; points", 2, 4),
        ("1:00 left; points", 3, 4),
        ("points", 4, 4),
    ]
