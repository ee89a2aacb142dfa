"""Trends that a wrong implementation misses have bars: what holds them, and at small size whether
ALiBi and sinusoids keep to theirs."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


@pytest.fixture
def language_model(load: Callable[[str], ModuleType]) -> ModuleType:
    return load("language_model")


@pytest.mark.parametrize(
    ("value", "bounds", "held"),
    [
        (1.05, {"most": 1.05}, True),
        (1.051, {"most": 1.05}, False),
        (2.9, {"least": 3.0}, False),
        (1.3, {"least": 0.8, "most": 1.2}, False),
        (float("nan"), {"most": 1.05}, False),
    ],
)
def test_a_missed_bar_is_said_and_is_the_exit_status(
    language_model: ModuleType,
    capsys: pytest.CaptureFixture[str],
    value: float,
    bounds: dict[str, float],
    held: bool,
) -> None:
    sound = language_model.Bar("sound", 1.0, most=1.0)
    assert language_model.judge([sound, language_model.Bar("a trend", value, **bounds)]) == (
        not held
    )
    first, second = capsys.readouterr().out.splitlines()
    assert first == "held: sound 1.000, bar ≤ 1"
    assert second.startswith("held: a trend" if held else "MISSED: a trend")


def test_power_norm_is_held_to_layer_norm_at_its_own_place(
    load: Callable[[str], ModuleType],
) -> None:
    norms = load("bench_norms")
    found = {
        ("layer", "before"): [100.0, 102.0],
        ("power", "before"): [103.0, 103.0],
        ("power", "after"): [999.0],
    }
    (bar,) = norms.power_bars(found)
    assert bar.held
    assert bar.value == pytest.approx(103 / 101)
    assert not norms.power_bars(found | {("power", "before"): [103.0, 104.0]})[0].held


@pytest.mark.prove
def test_alibi_reads_eight_times_as_far_as_it_was_trained_and_sinusoids_break(
    language_model: ModuleType,
) -> None:
    bars = importlib.import_module("bench_positions").BARS
    text = language_model.read_text(None, unit="characters", num_lines=10000)
    budget = language_model.Budget(steps=700, rows=24, length=64, rate=3e-3)
    plain = {"dim": 64, "layers": 2, "heads": 4, "dropout": {"residual": 0.0, "embedding": 0.0}}
    for kind in ("alibi", "sinusoidal"):
        model = language_model.train_model(
            plain | {"position": {"kind": kind}}, text, budget, device=torch.device("cpu")
        )
        near, far = (
            language_model.measure_perplexity(model, text, length=length, num_tokens=16384)
            for length in (64, 512)
        )
        assert language_model.Bar(kind, far / near, **bars[kind]).held, (kind, near, far)
