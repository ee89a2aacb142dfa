"""The base class of sparse kernels: a pattern of pairs, and two forms that compute it.

    attention over pattern ∧ mask

A kernel gives a `plan`: its pattern as a mask, the layout that fetches every pair of the pattern
(and others, which the pattern hides), and the queries that attend to all keys (wide_rows.py). Two
forms compute a plan: the chunked form (gathered.py: batched products, any device) and the
block-sparse form (flex.py: one fused kernel on CUDA). `form="auto"` takes flex on CUDA, except with
dropout or in double precision, which flex does not support, and for short rows outside a compiled
step, where compiling a kernel would cost seconds and save microseconds. "chunked" and "flex" are
for measuring one against the other.

Tested against: attention/kernels/full.py under the same pattern as a dense mask, through the laws
and in tests/attention.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headwise.attention.biases import Bias, DistanceBias
from headwise.attention.kernels.full import attention_weights
from headwise.attention.masks import Causal, Mask, MaskCondition, PreparedMask
from headwise.attention.refusals import refuse_vectors
from headwise.attention.shapes import check_shapes, empty_output, empty_weights, is_empty
from headwise.attention.sparse.flex import FlexTable, attend_flex, tiles_of
from headwise.attention.sparse.gathered import Layout, allowed_pairs, attend_gathered
from headwise.attention.sparse.wide_rows import WideRows, allowed_targets, attend_widely

Form = Literal["auto", "chunked", "flex"]
MIN_KEYS_TO_COMPILE = 2048
Views = tuple[Tensor, Tensor, Tensor]
"""Queries, keys and values, each [batch, head, time, head_dim]."""


@dataclass(frozen=True, eq=False)
class SparsePlan:
    """The pattern of a kernel for one batch. `wide` is None if no query attends to all keys."""

    pattern: MaskCondition
    layout: Layout
    wide: WideRows | None = None


@dataclass(frozen=True, eq=False)
class Planned(PreparedMask):
    """A mask evaluated once at the pairs of a plan, for a stack of layers that all use them."""

    plan: SparsePlan
    near: Bool[Tensor, "#batch #head block place chosen"] | FlexTable
    far: Bool[Tensor, "#batch #head key_block target key"] | None
    kernel: object
    """The kernel that planned it: another pattern must plan again."""


class SparseAttention(ABC):
    """A kernel that computes few pairs; a subclass defines which (`plan`) and is a frozen
    dataclass."""

    kind: ClassVar[str]
    dropout_rate: float
    form: Form

    @abstractmethod
    def plan(
        self, mask: Mask, num_queries: int, num_keys: int, device: torch.device
    ) -> SparsePlan: ...

    def prepare(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Mask:
        if mask.is_empty(num_queries, num_keys):
            return mask
        # A guess of what the layers will need; they compute what is missing.
        drops = self.dropout_rate > 0 and torch.is_grad_enabled()
        flexes = self._flexes(device, num_keys) and (self.form == "flex" or not drops)
        part = self._work_out(mask, num_queries, num_keys, device, flexes=flexes)
        return Mask((part,), blind_count=mask.blind_count)

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
        return self.attend((q, k, v), None, mask, bias=bias, training=training)

    def attend(
        self,
        near: Views,
        far: Views | None,
        mask: Mask,
        *,
        bias: Bias | None = None,
        training: bool = False,
    ) -> Float[Tensor, "batch head query value_dim"]:
        """`far` are the queries, keys and values of the queries that attend to all keys, if they
        have separate projections."""
        check_shapes(*near)
        refuse_vectors(bias, kind=self.kind)
        if is_empty(near[0], near[1]):
            return empty_output(*near)
        rate = self.dropout_rate if training else 0.0
        planned = self._planned(mask, near[0], near[1], bias=bias, dropout_rate=rate)
        if isinstance(planned.near, FlexTable):
            output = attend_flex(*near, planned.near, bias=bias)
        else:
            output = attend_gathered(
                *near, planned.plan.layout, planned.near, bias=bias, dropout_rate=rate
            )
        rows = planned.plan.wide
        if rows is None or (far is None and planned.plan.layout.takes_all):
            return output
        everywhere = attend_widely(
            *(near if far is None else far), rows, planned.far, bias=bias, dropout_rate=rate
        )
        return torch.where(rows.is_wide[:, None, :, None], everywhere, output)

    def weights(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        mask: Mask,
        *,
        bias: Bias | None = None,
    ) -> Float[Tensor, "batch head query key"]:
        """The whole map, zero outside the pattern; for inspection, so its size does not matter."""
        if is_empty(q, k):
            return empty_weights(q, k)
        mask = mask.as_given()
        plan = self.plan(mask, q.shape[2], k.shape[2], q.device)
        return attention_weights(q, k, mask & Mask((plan.pattern,)), bias)

    def _planned(
        self, mask: Mask, q: Tensor, k: Tensor, *, bias: Bias | None, dropout_rate: float
    ) -> Planned:
        """The prepared plan, if this kernel prepared it for this form."""
        flexes = self._flexes(q.device, k.shape[2]) and (
            self.form == "flex" or _fits_flex(q, bias, dropout_rate)
        )
        planned = mask.worked_out(Planned)
        if (
            planned is not None
            and planned.kernel == self
            and isinstance(planned.near, FlexTable) == flexes
        ):
            return planned
        return self._work_out(mask, q.shape[2], k.shape[2], q.device, flexes=flexes)

    def _flexes(self, device: torch.device, num_keys: int) -> bool:
        pays = torch.compiler.is_compiling() or num_keys >= MIN_KEYS_TO_COMPILE
        return self.form == "flex" or (self.form == "auto" and device.type == "cuda" and pays)

    def _work_out(
        self, mask: Mask, num_queries: int, num_keys: int, device: torch.device, *, flexes: bool
    ) -> Planned:
        mask = mask.as_given()
        plan = self.plan(mask, num_queries, num_keys, device)
        seen = mask & Mask((plan.pattern,))
        # Queries that attend to all keys are few: for them the dense mask is used.
        far = None if plan.wide is None else allowed_targets(mask, plan.wide, num_keys)
        if flexes:
            only_band = all(isinstance(part, Causal) for part in mask.parts)
            return Planned(mask, plan, tiles_of(seen, plan.layout, only_band=only_band), far, self)
        return Planned(mask, plan, allowed_pairs(seen, plan.layout), far, self)


def _fits_flex(q: Tensor, bias: Bias | None, dropout_rate: float) -> bool:
    """What the fused kernel supports: no dropout, no double precision, no small heads, no learned
    bias, whose gradient would need additional sums."""
    table = bias.table if isinstance(bias, DistanceBias) else bias
    learned = table is not None and not (isinstance(table, Tensor) and not table.requires_grad)
    return dropout_rate == 0 and q.dtype != torch.float64 and q.shape[-1] >= 16 and not learned


def dense_by_pairs(
    part: MaskCondition, num_queries: int, num_keys: int, device: torch.device
) -> Bool[Tensor, "#batch #head query key"]:
    """The dense table of a part that is defined for single pairs."""
    num_batch, num_heads = part.sizes
    batch = torch.arange(num_batch, device=device).view(-1, 1, 1, 1)
    head = torch.arange(num_heads, device=device).view(-1, 1, 1)
    query = torch.arange(num_queries, device=device)[:, None]
    table = part.at(batch, head, query, torch.arange(num_keys, device=device))
    return table.expand(num_batch, num_heads, num_queries, num_keys)
