"""Slopes of known laws, what is left out and why, going on where one stopped; every kernel once at
toy size."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from headwise.attention.choices import AttentionSettings, Full, Fused, Linformer, Reformer
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.reformer import attend_among_queries
from headwise.comparing import attention
from headwise.comparing.attention import (
    compare_attention,
    known_kernels,
    suited,
    will_not_fit,
)
from headwise.comparing.attention_conditions import choose_conditions, choose_kernels
from headwise.comparing.attention_measurement import (
    Conditions,
    Point,
    distance_from_exact,
    draw,
    measure_point,
)
from headwise.comparing.attention_table import AttentionComparison, as_markdown, fit_slope
from headwise.errors import UsageError
from headwise.explorer.pictures.kernel_cost_plots import draw_attention_comparison

CONDITIONS = Conditions("cpu", "fp32", heads=2, head_dim=8)
KERNELS: dict[str, AttentionSettings] = {"full": Full(), "fused": Fused()}


def fake(name: str, settings: AttentionSettings, length: int, conditions: Conditions) -> Point:
    """full: quadratic; fused: linear."""
    cost = length ** (2 if name == "full" else 1)
    return Point(
        name,
        length,
        forward_seconds=1e-9 * cost,
        both_seconds=3e-9 * cost,
        memory_mib=1e-6 * cost,
        distance=0.5,
    )


def test_a_kernel_is_suited_to_the_length_it_is_measured_at() -> None:
    """A summary of 64 for 13 tokens is no Linformer that a recipe could name."""
    for length, rank in ((13, 13), (97, 64)):
        settings = suited(Linformer(rank=64), length)
        assert settings == Linformer(rank=rank, max_length=length)
    assert suited(Fused(), 13) == Fused()


def test_slopes_are_exponents(tmp_path: Path) -> None:
    lengths = (1024, 4096, 8192, 16384)
    result = compare_attention(
        KERNELS, lengths=lengths, conditions=CONDITIONS, directory=tmp_path, measure=fake
    )
    assert result.slope("full", "both_seconds") == pytest.approx(2.0)
    assert result.slope("fused", "memory_mib") == pytest.approx(1.0)
    assert fit_slope([(3, 5)]) is None
    saved = json.loads((tmp_path / "attention.json").read_text(encoding="utf-8"))
    assert saved["slopes"]["full"]["forward_seconds"] == pytest.approx(2.0)
    assert "| full |" in (tmp_path / "attention.md").read_text(encoding="utf-8")


def test_short_lengths_have_slopes_too(tmp_path: Path) -> None:
    for number, (lengths, first) in enumerate(
        [((512, 1024, 2048, 4096), 1024), ((16, 32), 16), ((512, 4096, 8192), 4096), ((64,), 64)]
    ):
        place = tmp_path / str(number)
        result = compare_attention(
            KERNELS, lengths=lengths, conditions=CONDITIONS, directory=place, measure=fake
        )
        assert result.slope_from == first
        slope = result.slope("full", "both_seconds")
        assert slope == (None if len(lengths) == 1 else pytest.approx(2.0))
        assert f"exponents of length from {first:,} up" in as_markdown(result)


@pytest.mark.parametrize("is_causal", [pytest.param(False, marks=pytest.mark.prove), True])
def test_reformer_is_compared_with_what_it_approximates(*, is_causal: bool) -> None:
    conditions = replace(CONDITIONS, causal=is_causal)
    # Two buckets and 48 rounds: any two tokens meet in one of them, but for those that look
    # straight away from each other.
    everyone = measure_point(
        "reformer", Reformer(num_buckets=2, num_rounds=48, bucket_size=64), 61, conditions
    )
    few = measure_point(
        "reformer", Reformer(num_buckets=16, num_rounds=1, bucket_size=4), 61, conditions
    )
    assert everyone.distance is not None
    assert few.distance is not None
    assert everyone.distance < 0.15
    assert few.distance > 0.5


def test_exact_attention_among_queries_leaves_oneself_out() -> None:
    q, v = (torch.randn(1, 1, 3, 4, generator=torch.Generator().manual_seed(7)) for _ in range(2))
    out = attend_among_queries(q, v, is_causal=True)
    torch.testing.assert_close(out[0, 0, :2], v[0, 0, [0, 0]])  # alone, then the only other one
    scores = (q[0, 0, 2] @ torch.nn.functional.normalize(q[0, 0, :2], dim=-1).T) / 2
    torch.testing.assert_close(out[0, 0, 2], scores.softmax(-1) @ v[0, 0, :2])


def test_what_would_not_fit_is_left_out_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "available_memory", lambda device: 100 << 20)
    lengths = (2048, 4096, 8192, 16384)
    result = compare_attention(
        KERNELS, lengths=lengths, conditions=CONDITIONS, directory=tmp_path, measure=fake
    )
    skipped = {(point.kernel, point.length) for point in result.points if point.skipped}
    assert skipped == {("full", 16384)}
    assert (
        "left out: full, 16,384: would need about 0.3 GiB of memory, 0.1 are free"
        in as_markdown(result)
    )
    assert [path.name for path in draw_attention_comparison(result)] == ["attention.png"]
    slow = [replace(fake("full", Full(), 512, CONDITIONS), both_seconds=9.0)]
    assert "one run would take about 36 s" in str(will_not_fit(1024, slow, CONDITIONS))


def test_a_picture_needs_something_to_show(tmp_path: Path) -> None:
    """The exact kernel alone has a distance of zero, which no logarithm shows; and where all is
    left out there is nothing."""
    exact: dict[str, AttentionSettings] = {"fused": Fused()}
    result = compare_attention(
        exact, lengths=(512,), conditions=CONDITIONS, directory=tmp_path, measure=fake
    )
    result = replace(result, points=tuple(replace(point, distance=0.0) for point in result.points))
    assert [path.name for path in draw_attention_comparison(result)] == ["attention.png"]
    nothing = replace(result, points=(Point("fused", 512, skipped="it does not fit"),))
    assert draw_attention_comparison(nothing) == ()


def test_a_second_call_goes_on(tmp_path: Path) -> None:
    asked: list[tuple[str, int]] = []

    def counting(
        name: str, settings: AttentionSettings, length: int, conditions: Conditions
    ) -> Point:
        asked.append((name, length))
        return fake(name, settings, length, conditions)

    for lengths in ((8, 16), (8, 16, 32)):
        compare_attention(
            KERNELS, lengths=lengths, conditions=CONDITIONS, directory=tmp_path, measure=counting
        )
    assert len(asked) == len(set(asked)) == 6
    with pytest.raises(UsageError, match=r"other conditions \(heads: 2 → 4\)"):
        compare_attention(
            KERNELS, lengths=(8,), conditions=replace(CONDITIONS, heads=4), directory=tmp_path
        )
    for wrong in ((0,), (8, 99_999_999_999)):
        with pytest.raises(
            UsageError, match="are not usable; give whole numbers from 1 to 16,777,216"
        ):
            compare_attention(
                KERNELS, lengths=wrong, conditions=CONDITIONS, directory=tmp_path / "new"
            )


def test_one_failure_does_not_take_the_others_along(tmp_path: Path) -> None:
    def failing(
        name: str, settings: AttentionSettings, length: int, conditions: Conditions
    ) -> Point:
        if name == "full":
            raise torch.OutOfMemoryError
        if conditions.compiled:
            raise RuntimeError("cannot be traced\nand more")
        return fake(name, settings, length, conditions)

    compiled = replace(CONDITIONS, compiled=True)
    result = compare_attention(
        KERNELS, lengths=(8,), conditions=compiled, directory=tmp_path, measure=failing
    )
    full, fused = result.points
    assert full.skipped == "ran out of memory"
    assert fused.remark == "not compiled: cannot be traced"
    assert fused.both_seconds is not None


@pytest.mark.parametrize("name", known_kernels())
@pytest.mark.parametrize("causal", [False, True])
def test_every_kernel_is_measured(
    name: str, causal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwise.comparing.attention_measurement.SECONDS_PER_CASE", 0.0)
    conditions = replace(CONDITIONS, causal=causal)
    result: AttentionComparison = compare_attention(
        choose_kernels(name), lengths=(256,), conditions=conditions, directory=tmp_path
    )
    point = result.points[0]
    if point.skipped is not None:
        assert causal, "a kernel may refuse to look back only, and nothing else"
        assert not isinstance(known_kernels()[name], Full | Fused)
        return
    assert point.both_seconds is not None
    assert point.distance is not None
    assert math.isfinite(point.distance)
    if name in ("full", "fused"):
        assert point.distance < 1e-5


def test_the_distance_of_a_small_error_is_that_error() -> None:
    q, k, v = (draw(part, 13, CONDITIONS) for part in ("q", "k", "v"))
    exact = measure_point("fused", Fused(), 13, CONDITIONS)
    assert exact.distance == pytest.approx(0, abs=1e-6)
    weights = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1)
    assert distance_from_exact(
        1.25 * (weights @ v), (q, k, v), FullAttention(), is_causal=False
    ) == pytest.approx(0.25, abs=1e-5)


def test_what_is_asked_for() -> None:
    conditions = choose_conditions(
        device="cpu", precision="auto", compiling="auto", heads=3, head_dim=5, batch=2, causal=True
    )
    assert conditions == Conditions(
        "cpu", "fp32", heads=3, head_dim=5, batch=2, causal=True, compiled=False
    )
    assert list(choose_kernels("fused,full")) == ["fused", "full"]
    with pytest.raises(UsageError, match="no attention kernel 'fussed'; did you mean 'fused'"):
        choose_kernels("fussed")


def test_the_first_length_is_foretold_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of 65,536² scores are never formed to find out that there is no room for them; what is
    tried is in no table."""
    monkeypatch.setattr(attention, "available_memory", lambda device: 1 << 30)
    asked: list[tuple[str, int]] = []

    def counting(
        name: str, settings: AttentionSettings, length: int, conditions: Conditions
    ) -> Point:
        asked.append((name, length))
        return fake(name, settings, length, conditions)

    lengths = (65536, 131072)
    result = compare_attention(
        KERNELS, lengths=lengths, conditions=CONDITIONS, directory=tmp_path, measure=counting
    )
    assert asked == [
        *(("full", length) for length in (1024, 4096, 16384)),
        *(("fused", length) for length in (1024, 4096, 16384, 65536, 131072)),
    ]
    assert [bool(point.skipped) for point in result.points] == [True, True, False, False]


def test_what_was_left_out_is_tried_again(tmp_path: Path) -> None:
    def failing(
        name: str, settings: AttentionSettings, length: int, conditions: Conditions
    ) -> Point:
        raise torch.OutOfMemoryError

    for measure, skipped in ((failing, [True, True]), (fake, [False, False])):
        result = compare_attention(
            KERNELS, lengths=(8,), conditions=CONDITIONS, directory=tmp_path, measure=measure
        )
        assert [bool(point.skipped) for point in result.points] == skipped


def test_a_place_that_cannot_be_used_is_known_before_anything_is_measured(tmp_path: Path) -> None:
    def never(name: str, settings: AttentionSettings, length: int, conditions: Conditions) -> Point:
        raise AssertionError

    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(FileExistsError):
        compare_attention(
            KERNELS, lengths=(8,), conditions=CONDITIONS, directory=tmp_path / "file", measure=never
        )
    damaged = [
        json.dumps({"conditions": {}, "points": [{"kernel": "full", "length": 8, **wrong}]})
        for wrong in (
            {"length": "x"},
            {"length": 0},
            {"forward_seconds": "fast"},
            {"both_seconds": math.nan},
            {"kernel": 7},
        )
    ]
    for text in (
        "{",
        "{}",
        "[]",
        '{"conditions": {}, "points": [{"kernel": "full"}]}',
        '{"conditions": 3, "points": []}',
        *damaged,
    ):
        (tmp_path / "attention.json").write_text(text, encoding="utf-8")
        with pytest.raises(
            UsageError, match="is damaged, or not a table that `headwise compare attention` wrote"
        ):
            compare_attention(
                KERNELS, lengths=(8,), conditions=CONDITIONS, directory=tmp_path, measure=never
            )
