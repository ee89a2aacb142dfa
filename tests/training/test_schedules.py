import math

import pytest

from headwise.settings import check_settings
from headwise.training import schedules
from headwise.training.choices import (
    ConstantSchedule,
    CosineSchedule,
    InverseSqrtSchedule,
    LinearSchedule,
    NoamSchedule,
    TrainingSettings,
    learning_rate,
)


def test_inverse_sqrt_by_hand():
    schedule = InverseSqrtSchedule(peak=0.004, warmup=100, initial=0.001)
    rates = [learning_rate(schedule, step, steps=1000) for step in (1, 50, 100, 400, 10_000)]
    assert rates == pytest.approx([0.001 + 0.003 / 100, 0.0025, 0.004, 0.002, 0.0004])


def test_noam_is_the_paper_formula_and_inverse_sqrt_with_its_peak():
    dim, warmup, factor = 512, 4000, 2.0
    schedule = NoamSchedule(dim=dim, warmup=warmup, factor=factor)
    peak = factor / math.sqrt(dim * warmup)
    for step in (1, 7, 3999, 4000, 4001, 100_000):
        paper = factor * dim**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert learning_rate(schedule, step, steps=1) == pytest.approx(paper)
        assert schedules.inverse_sqrt(step, peak=peak, warmup=warmup) == pytest.approx(paper)
    # The base model of the paper peaks at 7e-4.
    assert learning_rate(NoamSchedule(dim=512, warmup=4000), 4000, steps=1) == pytest.approx(
        6.988e-4, rel=1e-3
    )


def test_cosine_by_hand():
    schedule = CosineSchedule(peak=0.1, warmup=10, final=0.02)
    rates = [learning_rate(schedule, step, steps=110) for step in (5, 10, 60, 85, 110, 200)]
    quarter = 0.02 + 0.08 * (1 + math.cos(math.pi * 0.75)) / 2
    assert rates == pytest.approx([0.05, 0.1, 0.06, quarter, 0.02, 0.02])


def test_linear_by_hand():
    schedule = LinearSchedule(peak=0.1, warmup=0, final=0.0)
    rates = [learning_rate(schedule, step, steps=100) for step in (1, 25, 100)]
    assert rates == pytest.approx([0.099, 0.075, 0.0])


def test_constant_by_hand():
    assert learning_rate(ConstantSchedule(peak=0.3), 1, steps=9) == 0.3
    assert learning_rate(ConstantSchedule(peak=0.3, warmup=3), 1, steps=9) == pytest.approx(0.1)


@pytest.mark.parametrize("kind", ["inverse_sqrt", "cosine", "linear", "constant"])
def test_rises_to_the_peak_and_never_above(kind):
    settings = check_settings(
        TrainingSettings, {"schedule": {"kind": kind, "peak": 0.01, "warmup": 13}, "steps": 97}
    )
    rates = [learning_rate(settings.schedule, step, steps=97) for step in range(1, 98)]
    assert max(rates) == rates[12] == pytest.approx(0.01)
    assert rates[:13] == sorted(rates[:13])
    assert rates[12:] == sorted(rates[12:], reverse=True)
