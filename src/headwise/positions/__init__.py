"""How a model knows where a token stands."""

from headwise.positions.learned import LearnedPositions
from headwise.positions.sinusoidal import SinusoidalPositions, sinusoidal_table

__all__ = ["LearnedPositions", "SinusoidalPositions", "sinusoidal_table"]
