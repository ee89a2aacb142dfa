"""The position encodings a recipe may name."""

import pytest
from pydantic import TypeAdapter, ValidationError

from headwise.positions.choices import PositionSettings, build_positions
from headwise.positions.learned import LearnedPositions
from headwise.positions.sinusoidal import SinusoidalPositions, sinusoidal_table


def test_builds_what_is_named() -> None:
    adapter = TypeAdapter(PositionSettings)
    waves = build_positions(
        adapter.validate_python({"kind": "sinusoidal", "layout": "halves"}), dim=6
    )
    assert isinstance(waves, SinusoidalPositions)
    assert waves.table[:5].equal(sinusoidal_table(5, 6, layout="halves"))
    learned = build_positions(adapter.validate_python({"kind": "learned", "max_length": 11}), dim=6)
    assert isinstance(learned, LearnedPositions)
    assert learned.table.weight.shape == (11, 6)


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(ValidationError, match="expected tags: 'sinusoidal', 'learned'"):
        TypeAdapter(PositionSettings).validate_python({"kind": "magic"})
