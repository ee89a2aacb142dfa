"""The base class of the attention scores that a recipe can name (`ScoreKind`): each score declares
its formula, its weights and its limits, and builds itself (settings/kind.py).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from headwise.attention.capabilities import RowLimit
from headwise.attention.scores.comparison import Score
from headwise.settings.kind import Kind


class ScoreKind(Kind):
    """Settings of one score, and what it declares."""

    formula: ClassVar[str]
    parameters: ClassVar[Mapping[str, str]] = {}
    """The names of its weights in the formula, with the attributes that hold them."""
    drawn: ClassVar[bool] = True
    """Whether its learned weights begin with random numbers."""
    same_width: ClassVar[bool] = False
    """Whether queries and keys must have the same width."""
    number: ClassVar[str | None] = None
    """The setting that the formula needs beside its weights."""

    @classmethod
    def small(cls, kind: str, *, num_keys: int, hidden: int) -> "ScoreKind":
        """Settings for an example worked by hand; `hidden`: width of the hidden layer of a
        network."""
        return cls(kind=kind)

    @property
    def longest_row(self) -> RowLimit | None:
        """The limit of the rows it can compare; None: any length."""
        return None

    @classmethod
    def declare(cls) -> dict[str, Any]:
        return {**super().declare(), "formula": cls.formula, "number": cls.number}

    def build(self, *, query_dim: int, key_dim: int) -> Score:
        """A function or module of (q, k); for multi-head attention both widths are those of a
        head."""
        raise NotImplementedError(f"{type(self).__name__} does not say how its score is built")
