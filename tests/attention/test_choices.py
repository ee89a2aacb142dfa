"""The kernels a recipe may name."""

import pytest
from pydantic import TypeAdapter, ValidationError

from headwise.attention.choices import AttentionSettings, build_attention
from headwise.attention.full import FullAttention
from headwise.attention.fused import FusedAttention


@pytest.mark.parametrize(("kind", "expected"), [("full", FullAttention(0.25)), ("fused", FusedAttention(0.25))])
def test_builds_what_is_named(kind: str, expected: object) -> None:
    settings = TypeAdapter(AttentionSettings).validate_python({"kind": kind})
    layer = build_attention(settings, dim=6, num_heads=2, dropout_rate=0.25, role="encoder")
    assert layer.kernel == expected
    assert layer.is_plain


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(ValidationError, match="does not match any of the expected tags: 'full', 'fused'"):
        TypeAdapter(AttentionSettings).validate_python({"kind": "magic"})
