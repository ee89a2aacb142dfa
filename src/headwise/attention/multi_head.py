"""Multi-head attention: several small attentions side by side, each with its own view of queries, keys and values.

    head_i = attention(x W_q[i], m W_k[i], m W_v[i])          x asks, m is looked at (m = x in self-attention)
    output = concat(head_1 … head_h) W_o

Vaswani et al. 2017, section 3.2.2. This module owns the weights and nothing else; how a head attends is the kernel it
is given. One weighted mean can express one relation between words; h of them express h relations at the same cost.

Tested against: torch.nn.MultiheadAttention and transformers' MarianAttention with copied weights.
"""

from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from headwise.attention.cache import KeyValueCache
from headwise.attention.full import attention_weights
from headwise.attention.masks import Mask


@runtime_checkable
class Kernel(Protocol):
    """How attention is computed. `prepare` may work a mask out once for all layers of a stack."""

    def prepare(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Mask: ...

    def __call__(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        v: Float[Tensor, "batch head key value_dim"],
        mask: Mask,
        *,
        bias: Float[Tensor, "#batch #head #query key"] | None = None,
        training: bool = False,
    ) -> Float[Tensor, "batch head query value_dim"]: ...


KeysValues = tuple[Float[Tensor, "batch head key head_dim"], Float[Tensor, "batch head key head_dim"]]


class MultiHeadAttention(nn.Module):
    """Weights of multi-head attention; `forward` attends from `x` to `memory`."""

    def __init__(self, dim: int, num_heads: int, kernel: Kernel, *, bias: bool = True) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.kernel = kernel
        self.query = nn.Linear(dim, dim, bias=bias)
        self.key_value = nn.Linear(dim, 2 * dim, bias=bias)
        self.output = nn.Linear(dim, dim, bias=bias)

    def forward(
        self, x: Float[Tensor, "batch query dim"], memory: Float[Tensor, "batch key dim"], mask: Mask
    ) -> Float[Tensor, "batch query dim"]:
        if memory is x:
            return self._attend_self(x, mask)
        return self.attend(x, self.keys_values(memory), mask)

    def _attend_self(self, x: Float[Tensor, "batch time dim"], mask: Mask) -> Float[Tensor, "batch time dim"]:
        # One product for all three: x is read once, and its gradient is one product instead of a sum of two.
        weight = torch.cat([self.query.weight, self.key_value.weight])
        bias = None if self.query.bias is None else torch.cat([self.query.bias, self.key_value.bias])
        q, k, v = F.linear(x, weight, bias).chunk(3, dim=-1)
        heads = self.kernel(self._split(q), self._split(k), self._split(v), mask, training=self.training)
        return self.output(heads.transpose(1, 2).flatten(2))

    def keys_values(self, memory: Float[Tensor, "batch key dim"]) -> KeysValues:
        """What is looked at, ready to be kept: computed once per source sentence, or appended to a cache."""
        k, v = self.key_value(memory).chunk(2, dim=-1)
        return self._split(k), self._split(v)

    def attend(
        self, x: Float[Tensor, "batch query dim"], keys_values: KeysValues, mask: Mask
    ) -> Float[Tensor, "batch query dim"]:
        heads = self.kernel(self._split(self.query(x)), *keys_values, mask, training=self.training)
        return self.output(heads.transpose(1, 2).flatten(2))

    def step(self, x: Float[Tensor, "row 1 dim"], cache: KeyValueCache) -> Float[Tensor, "row 1 dim"]:
        """One more position of causal self-attention: read everything before, remember this one."""
        return self.attend(x, cache.append(*self.keys_values(x)), Mask())

    def weights(
        self, x: Float[Tensor, "batch query dim"], memory: Float[Tensor, "batch key dim"], mask: Mask
    ) -> Float[Tensor, "batch head query key"]:
        """The map for people to look at; the fast path never stores it (see taps.py)."""
        return self.weights_over(x, self.keys_values(memory), mask)

    def weights_over(
        self, x: Float[Tensor, "batch query dim"], keys_values: KeysValues, mask: Mask
    ) -> Float[Tensor, "batch head query key"]:
        """The same map when keys and values are at hand already."""
        return attention_weights(self._split(self.query(x)), keys_values[0], mask)

    def _split(self, x: Float[Tensor, "batch time dim"]) -> Float[Tensor, "batch head time head_dim"]:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
