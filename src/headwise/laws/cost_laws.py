"""Checks the formulas by which an attention kernel declares its operations and its memory, against
what torch counts and keeps when the kernel runs.

    operations   matrix products of one row, as torch's FlopCounterMode counts them
                 (`AttentionKind.cost`)
    memory       what autograd keeps for the backward pass (`AttentionKind.memory`)

Both are asked for rows of 256 and 1,024 tokens. A formula may differ by a quarter, that
of memory by a half, because kernels with blocks round lengths up. Between the two lengths it must
grow as the count does, within five percent. `headwise compare attention` and the page compute with
these formulas.

Tested against: every kernel of Headwise, and formulas that are wrong.
"""

import math

import torch

from headwise.attention.capabilities import AttentionKind, keys_are_queries
from headwise.attention.choices import build_attention
from headwise.attention.costs import count_products
from headwise.attention.masks import segments

HEADS, HEAD_DIM = 2, 32
SHORT, LONG = 256, 1024
OPERATIONS_ERROR, MEMORY_ERROR, GROWTH_ERROR = 0.25, 0.5, 0.05


def cost_is_what_torch_counts(kind: AttentionKind, allowed: float = OPERATIONS_ERROR) -> None:
    """The formula of operations."""
    role = next((role for role in kind.roles() if role != "cross"), None)
    assert role is not None, "it can be used in no self-attention, so that there is no row"
    settings = kind.fit_length(LONG)

    def count(length: int) -> int:
        layer = build_attention(
            settings, dim=HEADS * HEAD_DIM, num_heads=HEADS, dropout_rate=0.0, role=role
        )
        maps = [part for part in layer.modules() if isinstance(part, torch.nn.Linear)]
        projected = 2 * length * sum(part.weight.numel() for part in maps)
        return count_products(layer, length, is_causal=False) - projected

    sizes = {"num_heads": HEADS, "head_dim": HEAD_DIM}
    formula = [settings.count_operations(length, **sizes) for length in (SHORT, LONG)]
    _compare("cost", kind.cost, formula, [count(length) for length in (SHORT, LONG)], allowed)


def memory_is_what_autograd_keeps(kind: AttentionKind, allowed: float = MEMORY_ERROR) -> None:
    """The formula of memory, if there is one."""
    if kind.memory is None:
        return
    settings = kind.fit_length(LONG)
    sizes = {"num_heads": HEADS, "head_dim": HEAD_DIM}
    formula = [settings.count_kept_bytes(length, **sizes) or 0 for length in (SHORT, LONG)]
    kept = [_count_kept_bytes(settings, length) for length in (SHORT, LONG)]
    _compare("memory", kind.memory, formula, kept, allowed)


def _compare(
    name: str, text: str, formula: list[float], counted: list[int], allowed: float
) -> None:
    ratio = formula[0] / max(1, counted[0])
    assert math.isclose(ratio, 1, abs_tol=allowed), (
        f"{name} = {text!r} gives {formula[0]:,.0f} for {SHORT} tokens, torch {counted[0]:,}: "
        f"{ratio:.2f} times as many (allowed: {1 - allowed} to {1 + allowed})"
    )
    grows, grown = formula[1] / formula[0], counted[1] / counted[0]
    assert math.isclose(grows, grown, rel_tol=GROWTH_ERROR), (
        f"{name} = {text!r} grows {grows:.2f} times from {SHORT} to {LONG} tokens, what torch "
        f"counts {grown:.2f} times"
    )


def _count_kept_bytes(settings: AttentionKind, length: int) -> int:
    """Bytes that autograd keeps for the backward pass of a row with one sentence."""
    kernel = settings.build_kernel(head_dim=HEAD_DIM, dropout_rate=0.0)
    number = torch.ones(1, length, dtype=torch.long)
    mask = segments(number, number).ignoring_blind()
    mask = kernel.prepare(mask, length, length, torch.device("cpu"))
    q, k, v = (torch.zeros(1, HEADS, length, HEAD_DIM, requires_grad=True) for _ in range(3))
    kept: dict[int, int] = {}

    def keep(x: torch.Tensor) -> torch.Tensor:
        storage = x.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        kernel(q, q if keys_are_queries(kernel) else k, v, mask, training=True)
    return sum(kept.values())


COST_LAWS = (cost_is_what_torch_counts, memory_is_what_autograd_keeps)
