"""Position encodings: how a model represents the order of its tokens."""

from headwise.positions.learned import LearnedPositions
from headwise.positions.sinusoidal import SinusoidalPositions, sinusoidal_table

__all__ = ["LearnedPositions", "SinusoidalPositions", "sinusoidal_table"]
