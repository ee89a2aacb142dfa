"""Cost formulas: worked by hand, and for every kernel beside what torch counts and keeps."""

import pytest
import torch

from headwise.attention.capabilities import AttentionKind, keys_are_queries
from headwise.attention.choices import BUILT_IN, build_attention
from headwise.attention.cost_formula import compute_formula
from headwise.attention.costs import count_products
from headwise.attention.masks import segments

HEADS, HEAD_DIM = 2, 32
SHORT, LONG = 256, 1024
SMALL = {
    # Sizes that are small beside a row of 256 tokens.
    "window": {"left": 24, "right": 24},
    "longformer": {"width": 48},
    "bigbird": {"block": 8},
    "performer": {"num_features": 24},
    "linformer": {"rank": 24, "max_length": LONG},
    "reformer": {"num_buckets": 16, "bucket_size": 16},
}
KINDS = [kind.model_validate(SMALL.get(kind.word(), {})) for kind in BUILT_IN]


@pytest.mark.parametrize(
    ("formula", "value"),
    [("4 · n² · h · d", 4 * 49 * 3 * 5), ("n · (left + 1) / 2 - min(n, left)", 7 * 3 / 2 - 2)],
)
def test_formulas_are_computed(formula: str, value: float) -> None:
    assert compute_formula(formula, {"n": 7, "h": 3, "d": 5, "left": 2}) == value


@pytest.mark.parametrize("formula", ["4 ·", "n · width", "max(n, 2)", "n.real", "[n]", "'n'", "-n"])
def test_what_is_no_formula_is_refused(formula: str) -> None:
    with pytest.raises(ValueError, match="is not a cost formula"):
        compute_formula(formula, {"n": 7})


def count_operations(settings: AttentionKind, length: int) -> int:
    """Products that torch counts, without the projections."""
    layer = build_attention(
        settings, dim=HEADS * HEAD_DIM, num_heads=HEADS, dropout_rate=0.0, role="encoder"
    )
    linear = [part.weight.numel() for part in layer.modules() if isinstance(part, torch.nn.Linear)]
    return count_products(layer, length, is_causal=False) - 2 * length * sum(linear)


def count_kept_bytes(settings: AttentionKind, length: int) -> int:
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


@pytest.mark.parametrize("settings", KINDS, ids=lambda settings: settings.kind)
def test_operations_are_those_that_torch_counts(settings: AttentionKind) -> None:
    sizes = {"num_heads": HEADS, "head_dim": HEAD_DIM}
    short, long = (settings.count_operations(length, **sizes) for length in (SHORT, LONG))
    counted_short, counted_long = (count_operations(settings, length) for length in (SHORT, LONG))
    assert short / counted_short == pytest.approx(1, abs=0.25)
    assert long / short == pytest.approx(counted_long / counted_short, rel=0.05)


@pytest.mark.parametrize("settings", KINDS, ids=lambda settings: settings.kind)
def test_memory_is_what_autograd_keeps(settings: AttentionKind) -> None:
    sizes = {"num_heads": HEADS, "head_dim": HEAD_DIM}
    short, long = (settings.count_kept_bytes(length, **sizes) for length in (SHORT, LONG))
    assert short is not None
    assert long is not None
    kept_short, kept_long = (count_kept_bytes(settings, length) for length in (SHORT, LONG))
    assert short / kept_short == pytest.approx(1, abs=0.25)
    assert long / short == pytest.approx(kept_long / kept_short, rel=0.05)
