"""Full attention in one fused kernel: the same numbers without ever storing the [query, key] table.

The softmax is computed block by block with a running maximum and sum (Dao et al. 2022,
FlashAttention), so memory is linear in the length. torch's `scaled_dot_product_attention` chooses
the kernel; this file translates the mask: nothing for no mask, the causal path for a plain causal
mask, a boolean table otherwise.

A query without a visible key would divide zero by zero. Such rows are unmasked for the product and
their output is set to zero, which also makes their gradient zero.

In one case another file computes the result: training in bf16 on a CPU, where torch's fused
backward is slower than plain products with stored weights (attention/stored_weights.py has the
reason). Measured on two cores, forward and backward, rows of 128, 8 heads: bf16 fused 59 ms, the
fused kernel in fp32 43 ms, stored 21 ms; from rows of 1,024 on memory traffic dominates and both
are equally fast.

Tested against: attention/kernels/full.py, outputs and gradients, through the table of laws.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from headwise.attention.biases import Bias, dense_bias
from headwise.attention.capabilities import EVERY_NEED, AttentionKind
from headwise.attention.kernels.full import attention_weights
from headwise.attention.masks import Causal, Explicit, Mask
from headwise.attention.multi_head import Kernel, Need
from headwise.attention.refusals import refuse_vectors
from headwise.attention.shapes import check_shapes
from headwise.attention.stored_weights import attend_storing_weights
from headwise.settings.kind import Words

# Stored weights of longer rows would fill memory (tokens × heads × keys × 2 bytes a layer), and are
# no longer faster.
MAX_STORED_KEYS = 512


@dataclass(frozen=True, eq=False)
class VisibleTable:
    """A dense mask prepared once for a stack of layers: rows without a visible key are unmasked and
    marked."""

    opened: Bool[Tensor, "#batch #head #query key"]
    empty: Bool[Tensor, "#batch #head #query 1"]
    zeroed: bool = True
    """Whether the output of marked rows is set to zero."""

    @property
    def sizes(self) -> tuple[int, int]:
        return self.opened.shape[0], self.opened.shape[1]

    def at(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return Explicit(self.opened & ~self.empty).at(batch, head, query, key)

    def dense(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "#batch #head #query key"]:
        return self.opened & ~self.empty


@dataclass(frozen=True)
class FusedAttention:
    is_plain: ClassVar[bool] = True
    dropout_rate: float = 0.0

    def prepare(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Mask:
        if len(mask.parts) == 0 or (mask.parts == (Causal(),) and num_queries == num_keys):
            return mask
        allowed = mask.dense(num_queries, num_keys, device)
        assert allowed is not None
        empty = ~allowed.any(-1, keepdim=True)
        return Mask(
            (VisibleTable(allowed | empty, empty, zeroed=mask.blind_count),),
            blind_count=mask.blind_count,
        )

    def __call__(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        v: Float[Tensor, "batch head key value_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
        training: bool = False,
    ) -> Float[Tensor, "batch head query value_dim"]:
        check_shapes(q, k, v)
        refuse_vectors(bias, kind="fused")
        mask = self._prepared(mask, q.shape[-2], k.shape[-2], q.device)
        rate = self.dropout_rate if training else 0.0
        stores = bias is None and rate == 0 and self.stores_weights(q, k)
        if len(mask.parts) == 0 and bias is None and not stores:
            return F.scaled_dot_product_attention(q, k, v, dropout_p=rate)
        if mask.parts == (Causal(),) and bias is None and not stores:
            return F.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=True)
        table = mask.worked_out(VisibleTable)
        visible = (
            table.opened if table is not None else mask.dense(q.shape[-2], k.shape[-2], q.device)
        )
        if bias is not None:
            bias = dense_bias(bias, q.shape[-2], k.shape[-2])
            # Minus infinity is safe because no row is fully masked any more; in float16 the lowest
            # finite number would not hide a large score.
            visible = (
                bias.to(q.dtype)
                if visible is None
                else bias.to(q.dtype).masked_fill(~visible, -torch.inf)
            )
        if stores:
            output = attend_storing_weights(q, k, v, visible)
        else:
            output = F.scaled_dot_product_attention(q, k, v, attn_mask=visible, dropout_p=rate)
        return (
            output.masked_fill(table.empty, 0.0) if table is not None and table.zeroed else output
        )

    def weights(self, q: Tensor, k: Tensor, mask: Mask, *, bias: Bias | None = None) -> Tensor:
        return attention_weights(q, k, mask, bias)

    def _prepared(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Mask:
        is_prepared = mask.worked_out(VisibleTable) is not None
        return mask if is_prepared else self.prepare(mask, num_queries, num_keys, device)

    def stores_weights(self, q: Tensor, k: Tensor) -> bool:
        """Only for training: without gradients there is no slow backward, and decoding has one
        query at a time."""
        learns = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad)
        low = q.device.type == "cpu" and q.dtype == torch.bfloat16
        return learns and low and 0 < k.shape[-2] <= MAX_STORED_KEYS


class Fused(AttentionKind):
    """The same numbers from torch's fused kernel; the kernel to train with."""

    kind: Literal["fused"] = "fused"

    title: ClassVar[Words] = ("fused", "融合")
    summary: ClassVar[Words] = (
        "The numbers of full attention from one fused kernel, without a table of all pairs.",
        "与全注意力相同的数，由一个融合内核算出，不存储所有对的表。",
    )
    paper: ClassVar[str] = "Dao et al. 2022, FlashAttention"
    cost: ClassVar[str] = "4 · n² · h · d"
    memory: ClassVar[str] = "4 · n · h · d + n²"
    has_own_weights: ClassVar[bool] = False

    @property
    def takes(self) -> frozenset[Need]:
        return EVERY_NEED - {"weights"}

    def build_kernel(self, *, head_dim: int, dropout_rate: float) -> Kernel:
        return FusedAttention(dropout_rate)
