"""The kernels a recipe may name."""

import pytest
from pydantic import TypeAdapter, ValidationError

from headwise.attention.choices import AttentionSettings, build_kernel
from headwise.attention.full import FullAttention
from headwise.attention.fused import FusedAttention


@pytest.mark.parametrize(("kind", "expected"), [("full", FullAttention(0.25)), ("fused", FusedAttention(0.25))])
def test_builds_what_is_named(kind: str, expected: object) -> None:
    settings = TypeAdapter(AttentionSettings).validate_python({"kind": kind})
    assert build_kernel(settings, dropout_rate=0.25) == expected


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(ValidationError, match="does not match any of the expected tags: 'full', 'fused'"):
        TypeAdapter(AttentionSettings).validate_python({"kind": "magic"})
