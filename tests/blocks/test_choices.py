"""The norms, feed-forward parts and dropouts a recipe may name."""

import pytest
from pydantic import TypeAdapter, ValidationError

from headwise.blocks.choices import (
    DropoutSettings,
    FeedForwardSettings,
    NormSettings,
    Power,
    build_feed_forward,
    build_norm,
    hidden_width,
)
from headwise.blocks.feed_forward import FeedForward, GatedFeedForward
from headwise.blocks.normalization import LayerNorm, RMSNorm


@pytest.mark.parametrize(("kind", "expected"), [("layer", LayerNorm), ("rms", RMSNorm)])
def test_norms(kind: str, expected: type) -> None:
    norm = build_norm(
        TypeAdapter(NormSettings).validate_python({"kind": kind, "epsilon": 0.25}), dim=7
    )
    assert isinstance(norm, expected)
    assert norm.epsilon == 0.25
    assert norm.gain.shape == (7,)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("relu", FeedForward), ("gelu", FeedForward), ("gated", GatedFeedForward)],
)
def test_feed_forward_parts(kind: str, expected: type) -> None:
    settings = TypeAdapter(FeedForwardSettings).validate_python({"kind": kind, "hidden": 11})
    part = build_feed_forward(settings, dim=7, dropout_rate=0.5)
    assert isinstance(part, expected)
    assert part.narrow.weight.shape == (7, 11)
    assert part.dropout_rate == 0.5


@pytest.mark.parametrize(
    ("kind", "dim", "width"),
    [("relu", 24, 96), ("gelu", 10, 40), ("gated", 24, 64), ("gated", 10, 32)],
)
def test_hidden_width_unless_said(kind: str, dim: int, width: int) -> None:
    assert (
        hidden_width(TypeAdapter(FeedForwardSettings).validate_python({"kind": kind}), dim=dim)
        == width
    )


def test_a_gated_part_has_about_as_many_weights_as_a_plain_one() -> None:
    counts = []
    for kind in ("relu", "gated"):
        part = build_feed_forward(
            TypeAdapter(FeedForwardSettings).validate_python({"kind": kind}),
            dim=96,
            dropout_rate=0.0,
        )
        counts.append(
            sum(parameter.numel() for parameter in part.parameters() if parameter.ndim == 2)
        )
    assert counts[0] == counts[1]


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_rates_are_probabilities_below_one(rate: float) -> None:
    with pytest.raises(ValidationError, match="residual"):
        DropoutSettings(residual=rate)


@pytest.mark.parametrize("kind", ["layer", "rms", "power", "batch"])
@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e300])
def test_an_epsilon_that_float32_does_not_have_is_refused(kind: str, epsilon: float) -> None:
    """1e-300 is 0 there, and a row of equal numbers would be divided by it; beside 1e300 all rows
    are 0."""
    with pytest.raises(ValidationError, match="epsilon"):
        TypeAdapter(NormSettings).validate_python({"kind": kind, "epsilon": epsilon})


def test_a_warm_up_that_no_counter_reaches_is_refused() -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1000000000000"):
        Power(warmup=10**23)
