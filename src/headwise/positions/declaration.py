"""The base class of the position encodings that a recipe can name (`PositionKind`): each encoding
declares its formula and its needs, and builds what is added to embeddings or to attention.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import nn

from headwise.attention.capabilities import RowLimit
from headwise.attention.multi_head import Need, Relation
from headwise.settings.kind import Kind


class PositionKind(Kind):
    """Settings of one position encoding, and what it declares."""

    formula: ClassVar[str]
    """Two formulas are separated by two spaces."""
    needs: ClassVar[Need | None] = None
    """What a kernel must support for it, with default settings; None: nothing."""
    variants: ClassVar[Mapping[str, Need]] = {}
    """Settings with other requirements, as a recipe writes them."""
    needs_model: ClassVar[bool] = False
    """Whether there is nothing to show before it has been learned."""

    @property
    def longest_row(self) -> RowLimit | None:
        """The longest rows it can encode; None: any length."""
        return None

    def build_added(self, *, dim: int) -> nn.Module | None:
        """The module that is added to the embeddings; None: nothing."""
        return None

    def build_relations(
        self, *, num_layers: int, dim: int, num_heads: int, is_causal: bool
    ) -> Sequence[Relation | None]:
        """For each layer of a stack the relation for its self-attention; None: nothing."""
        return [None] * num_layers

    @classmethod
    def declare(cls) -> dict[str, Any]:
        return {**super().declare(), "formula": cls.formula, "needs_model": cls.needs_model}
