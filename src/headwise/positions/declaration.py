"""What a position encoding declares about itself, in the file that computes it
(settings/kind.py)."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import nn

from headwise.attention.capabilities import RowLimit
from headwise.attention.multi_head import Need, Relation
from headwise.settings.kind import Kind


class PositionKind(Kind):
    """Settings of one position encoding, and what it declares."""

    formula: ClassVar[str]
    """Two spaces stand between two formulas."""
    needs: ClassVar[Need | None] = None
    """What a kernel must be able to take for it, with default settings; None: nothing."""
    variants: ClassVar[Mapping[str, Need]] = {}
    """Settings that ask for something else, as a recipe writes them."""
    needs_model: ClassVar[bool] = False
    """Whether there is nothing to show of it before a model has learned it."""

    @property
    def longest_row(self) -> RowLimit | None:
        """The limit of the rows it can number; None: any length."""
        return None

    def build_added(self, *, dim: int) -> nn.Module | None:
        """What is added to the embeddings of tokens; None: nothing."""
        return None

    def build_relations(
        self, *, num_layers: int, dim: int, num_heads: int, is_causal: bool
    ) -> Sequence[Relation | None]:
        """For each layer of a stack what its self-attention is told; None: nothing."""
        return [None] * num_layers

    @classmethod
    def declare(cls) -> dict[str, Any]:
        return {**super().declare(), "formula": cls.formula, "needs_model": cls.needs_model}
