"""The base classes of the norms and feed-forward networks that a recipe can name: each declares its
properties, and a norm its formula, and builds itself (settings/kind.py).
"""

from typing import Any, ClassVar, Literal

from pydantic import Field
from torch import nn

from headwise.settings.kind import Kind


class NormKind(Kind):
    """Settings of one norm, and what it declares."""

    place: Literal["before", "after"] = "before"
    """Before the sub-layer (pre-norm) or after it (post-norm, the original paper)."""

    formula: ClassVar[str]
    counts_tokens: ClassVar[bool] = False
    """Whether it keeps statistics of the tokens it has seen while training."""

    def build(self, *, dim: int) -> nn.Module:
        raise NotImplementedError(f"{type(self).__name__} does not say how its norm is built")

    @classmethod
    def declare(cls) -> dict[str, Any]:
        return {**super().declare(), "formula": cls.formula}


class FeedForwardKind(Kind):
    """Settings of one feed-forward part, and what it declares."""

    hidden: int | None = Field(default=None, ge=1)
    """Width of the hidden layer; by default 4 × dim."""

    formula: ClassVar[str]

    def hidden_width(self, *, dim: int) -> int:
        return 4 * dim if self.hidden is None else self.hidden

    def build(self, *, dim: int, dropout_rate: float) -> nn.Module:
        raise NotImplementedError(f"{type(self).__name__} does not say what it builds")

    @classmethod
    def declare(cls) -> dict[str, Any]:
        return {**super().declare(), "formula": cls.formula}
