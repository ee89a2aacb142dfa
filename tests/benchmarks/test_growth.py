"""Exponents of known laws, the count of operations, and the benchmark once at toy size."""

import importlib
import itertools
import json
from pathlib import Path
from types import ModuleType

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def growth(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    return importlib.import_module("bench_growth")


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 2.0])
def test_the_slope_of_a_power_is_its_exponent(growth: ModuleType, exponent: float) -> None:
    sizes = (2, 3, 7, 31)
    assert growth.slope(sizes, [5 * size**exponent for size in sizes]) == pytest.approx(exponent)


def test_sizes_double_and_are_few(growth: ModuleType) -> None:
    assert growth.powers(1, 8) == (1, 2, 4, 8)
    assert growth.powers(500, 8000, factor=4) == (500, 2000, 8000)
    long = growth.powers(1, 1 << 10)
    assert long[-1] == 1 << 10
    assert 3 <= len(long) <= 6
    assert len({after / before for before, after in itertools.pairwise(long)}) == 1


def test_attention_rules_long_rows_and_only_those(growth: ModuleType) -> None:
    size = growth.SIZES["pocket"]
    axis = next(
        axis
        for axis in growth.training_axes(size, tokens=2048, longest=512)
        if axis.name == "length"
    )

    def exponent(*lengths: int) -> float:
        return growth.slope(lengths, [axis.point(length).training_flops for length in lengths])

    assert exponent(2, 3) < 0.01
    assert exponent(1 << 20, 1 << 21) > 0.99


def test_a_verdict_lies_between_the_two_worlds(growth: ModuleType) -> None:
    def judge(*seconds: float) -> bool:
        return growth.Growth(
            "training", "batch", (1, 2), seconds, flops=(1.0, 1.0), launches=-1.0
        ).is_expected

    assert judge(1.0, 0.7)
    assert not judge(1.0, 1.5)
    assert not judge(1.0, 0.4)


def test_it_runs_and_draws(growth: ModuleType, tmp_path: Path) -> None:
    written, picture = tmp_path / "out.json", tmp_path / "out.png"
    arguments = [
        "--quick",
        "--device",
        "cpu",
        "--axis",
        "batch",
        "--json",
        str(written),
        "--picture",
        str(picture),
    ]
    growth.main(arguments)
    record = json.loads(written.read_text(encoding="utf-8"))
    assert [(line["mode"], line["axis"]) for line in record["growth"]] == [
        ("training", "batch"),
        ("decoding", "batch"),
    ]
    assert picture.stat().st_size > 10_000
