"""Cost formulas: worked by hand, and for every kernel beside what torch counts and keeps."""

from collections.abc import Callable
from typing import Literal

import pytest

from headwise.attention.capabilities import AttentionKind
from headwise.attention.choices import BUILT_IN
from headwise.attention.cost_formula import compute_formula
from headwise.attention.kernels.full import Full
from headwise.laws import check
from headwise.laws.cost_laws import (
    COST_LAWS,
    LONG,
    cost_is_what_torch_counts,
    memory_is_what_autograd_keeps,
)

SMALL = {
    # Sizes that are small beside a row of 256 tokens.
    "window": {"left": 24, "right": 24},
    "longformer": {"width": 48},
    "bigbird": {"block": 8},
    "performer": {"num_features": 24},
    "linformer": {"rank": 24, "max_length": LONG},
    "reformer": {"num_buckets": 16, "bucket_size": 16},
}
KINDS = [kind.model_validate(SMALL.get(kind.word(), {})) for kind in BUILT_IN]


@pytest.mark.parametrize(
    ("formula", "value"),
    [("4 · n² · h · d", 4 * 49 * 3 * 5), ("n · (left + 1) / 2 - min(n, left)", 7 * 3 / 2 - 2)],
)
def test_formulas_are_computed(formula: str, value: float) -> None:
    assert compute_formula(formula, {"n": 7, "h": 3, "d": 5, "left": 2}) == value


@pytest.mark.parametrize("formula", ["4 ·", "n · width", "max(n, 2)", "n.real", "[n]", "'n'", "-n"])
def test_what_is_no_formula_is_refused(formula: str) -> None:
    with pytest.raises(ValueError, match="is not a cost formula"):
        compute_formula(formula, {"n": 7})


@pytest.mark.parametrize("law", COST_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("settings", KINDS, ids=lambda settings: settings.kind)
def test_formulas_are_what_torch_counts_and_keeps(
    settings: AttentionKind, law: Callable[[AttentionKind, float], None]
) -> None:
    law(settings, 0.25)


class Boastful(Full):
    """Full attention that says it costs less, or grows less."""

    kind: Literal["boastful"] = "boastful"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("name", "formula", "message", "ask"),
    [
        ("cost", "2 · n² · h · d", "cost = .* torch .*: 0.50 times as many", check),
        (
            "cost",
            "1024 · n · h · d",
            "cost = .* grows 4.00 times .* tokens, .* 16.00",
            cost_is_what_torch_counts,
        ),
        ("memory", "n · h · d", "memory = .* times as many", memory_is_what_autograd_keeps),
    ],
)
def test_a_wrong_formula_is_told(
    name: str,
    formula: str,
    message: str,
    ask: Callable[[AttentionKind], object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the law of that formula, which `check` asks with all others."""
    monkeypatch.setattr(Boastful, name, formula)
    with pytest.raises(AssertionError, match=message):
        ask(Boastful())
