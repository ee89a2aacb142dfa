"""Cross-attention to two views of the source with the same weights: the contexts are averaged.

    context = ½ · attention(x, top) + ½ · attention(x, view)

`memory` holds several views of each source token side by side, [source, (1 + views) · dim]: the
encoder's last layer first, then one view for each decoder layer (models/source_views.py). Queries,
keys and values are made with the weights of ordinary cross-attention, so there are no new ones. The
two views are twice as many heads to the kernel, first those of the last layer: caches and searches
know nothing of views, and a map shows each view by itself.

Liu et al. 2020. Tested against: two calls of ordinary attention; a view that is the last layer =
ordinary attention.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.attention.masks import Mask
from headwise.attention.multi_head import Kernel, KeysValues, MultiHeadAttention


class ViewedAttention(MultiHeadAttention):
    """The cross-attention of decoder layer number `view`, counted from 1."""

    def __init__(self, dim: int, num_heads: int, kernel: Kernel, *, view: int) -> None:
        super().__init__(dim, num_heads, kernel)
        self.view = view

    def forward(
        self,
        x: Float[Tensor, "batch query dim"],
        memory: Float[Tensor, "batch key views_dim"],
        mask: Mask,
        *,
        position: Int[Tensor, "batch query"] | None = None,
    ) -> Float[Tensor, "batch query dim"]:
        return self.attend(x, self.keys_values(memory), mask)

    def queries(self, x: Float[Tensor, "batch query dim"]) -> Tensor:
        """The queries of every head, once for each view."""
        return super().queries(x).repeat(1, 2, 1, 1)

    def keys_values(self, memory: Float[Tensor, "batch key views_dim"]) -> KeysValues:
        """Keys and values of both views."""
        dim = self.num_heads * self.head_dim
        top, own = memory[..., :dim], memory[..., self.view * dim : (self.view + 1) * dim]
        views = [self._keys_values(part) for part in (top, own)]
        k, v = (torch.cat(parts, dim=1) for parts in zip(*views, strict=True))
        return k, v

    def attend(
        self,
        x: Float[Tensor, "batch query dim"],
        keys_values: KeysValues,
        mask: Mask,
        *,
        time: int | None = None,
    ) -> Float[Tensor, "batch query dim"]:
        found = self._kernel_at(time, x)(
            self.queries(x), *keys_values, mask, training=self.training
        )
        return self._merge(found.unflatten(1, (2, self.num_heads)).mean(dim=1))

    def weights(
        self,
        x: Float[Tensor, "batch query dim"],
        memory: Float[Tensor, "batch key views_dim"],
        mask: Mask,
        *,
        position: Int[Tensor, "batch query"] | None = None,
    ) -> Float[Tensor, "batch heads_of_views query key"]:
        return self.weights_over(x, self.keys_values(memory), mask)
