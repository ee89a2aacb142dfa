"""The kernels a recipe may name."""

from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from headwise.attention.choices import AttentionSettings, Full, build_attention
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.kernels.scored import ScoredAttention
from headwise.attention.local_position import PredictiveWindow
from headwise.attention.normalizers import Entmax
from headwise.attention.scores.additive import AdditiveScore
from headwise.errors import SettingsError
from headwise.settings import check_settings


@pytest.mark.parametrize(
    ("kind", "expected"), [("full", FullAttention(0.25)), ("fused", FusedAttention(0.25))]
)
def test_builds_what_is_named(kind: str, expected: object) -> None:
    settings = TypeAdapter(AttentionSettings).validate_python({"kind": kind})
    layer = build_attention(settings, dim=6, num_heads=2, dropout_rate=0.25, role="encoder")
    assert layer.kernel == expected
    assert layer.is_plain


def test_every_whole_number_has_an_end() -> None:
    """Beyond it a kernel refuses it too, but cannot say where in the recipe it stands."""
    for settings in get_args(get_args(AttentionSettings)[0]):
        for name, field in settings.model_fields.items():
            if field.annotation is int:
                with pytest.raises(ValidationError, match=f"{name}\n.*less than or equal to"):
                    settings(**{name: 10**23})


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(
        ValidationError, match="does not match any of the expected tags: 'full', 'fused'"
    ):
        TypeAdapter(AttentionSettings).validate_python({"kind": "magic"})


def test_the_three_steps_can_be_exchanged() -> None:
    data = {
        "score": {"kind": "additive", "hidden": 5},
        "weights": {"kind": "entmax"},
        "window": {"kind": "local_p", "half_width": 3},
    }
    layer = build_attention(
        check_settings(Full, data), dim=6, num_heads=2, dropout_rate=0.25, role="cross"
    )
    assert isinstance(layer.kernel, ScoredAttention)
    assert isinstance(layer.kernel.score, AdditiveScore)
    assert isinstance(layer.kernel.window, PredictiveWindow)
    assert layer.kernel.window.deviation == 1.5
    assert layer.kernel.normalizer == Entmax()
    assert not layer.is_plain


@pytest.mark.parametrize("role", ["encoder", "decoder"])
def test_windows_over_the_source_stand_in_cross_attention_only(role: Any) -> None:
    settings = check_settings(Full, {"window": {"kind": "local_m"}})
    with pytest.raises(
        SettingsError,
        match=rf"model.{role}.attention, but its window.kind=local_m .*decoder.cross_attention "
        r"instead",
    ):
        build_attention(settings, dim=6, num_heads=2, dropout_rate=0.0, role=role)


@pytest.mark.parametrize(
    ("path", "value", "bound"),
    [
        ("score", {"kind": "gaussian", "width": 1e-30}, "score.width: must be at least 1e-06"),
        ("score", {"kind": "cosine", "scale": 1e-30}, "score.scale: must be at least 1e-06"),
        (
            "weights",
            {"kind": "hard", "temperature": 1e-300},
            "weights.temperature: must be at least 1e-06",
        ),
        (
            "window",
            {"kind": "local_p", "deviation": 1e-300},
            "window.deviation: must be at least 1e-06",
        ),
    ],
)
def test_numbers_that_vanish_in_float32_are_refused(
    path: str, value: dict[str, Any], bound: str
) -> None:
    """Their squares or inverses would be 0 or infinite, and weights no numbers."""
    with pytest.raises(SettingsError, match=bound):
        check_settings(Full, {path: value})


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "window", "left": 10**23},
        {"kind": "longformer", "width": 10**23},
        {"kind": "longformer", "num_global": 10**23},
        {"kind": "longformer", "num_global": 0, "dilation": 10**23},
        {"kind": "bigbird", "block": 10**23},
    ],
)
def test_numbers_beyond_those_of_tensors_are_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="less than or equal to 1073741824"):
        TypeAdapter(AttentionSettings).validate_python(data)
