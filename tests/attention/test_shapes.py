"""What does not fit together is said in one sentence, not by a product of matrices."""

from functools import partial

import pytest
import torch

from headwise.attention.choices import (
    AttentionSettings,
    Fused,
    Longformer,
    Reformer,
    build_attention,
)
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.window import WindowAttention
from headwise.attention.masks import Mask, causal, everything, explicit, padding, segments
from headwise.attention.multi_head import MultiHeadAttention
from headwise.attention.shapes import check_heads, check_shapes, check_tokens
from headwise.errors import MaskError, UsageError
from headwise.language import use_language
from headwise.positions.alibi import AlibiRelation

Q = torch.zeros(2, 3, 5, 7)


@pytest.mark.parametrize(
    ("k", "v", "problem"),
    [
        ((2, 3, 11, 8), (2, 3, 11, 7), "queries and keys need the same width"),
        ((2, 3, 11, 7), (2, 3, 12, 7), "every key needs one value"),
        (
            (2, 4, 11, 7),
            (2, 4, 11, 7),
            "all three need the same batch and the same number of heads",
        ),
        ((3, 11, 7), (3, 11, 7), "all three need four axes"),
    ],
)
def test_what_does_not_fit_is_refused(k: tuple[int, ...], v: tuple[int, ...], problem: str) -> None:
    with pytest.raises(UsageError, match=f"of shapes .* do not fit: {problem}; give ") as caught:
        check_shapes(Q, torch.zeros(k), torch.zeros(v))
    assert str(list(k)) in str(caught.value)
    use_language("zh")
    assert "不相配" in str(caught.value)


def test_what_fits_is_let_through() -> None:
    check_shapes(Q, torch.zeros(2, 3, 11, 7), torch.zeros(2, 3, 11, 13))
    check_shapes(Q, torch.zeros(2, 3, 11, 8), torch.zeros(2, 3, 11, 7), same_width=False)


@pytest.mark.parametrize(
    ("num_heads", "dim", "nearest"), [(0, 10, 1), (3, 10, 2), (-2, 10, 1), (4, 6, 3), (99, 6, 6)]
)
def test_heads_divide_a_width(num_heads: int, dim: int, nearest: int) -> None:
    """What is proposed instead divides the width, whatever the width."""
    check_heads(dim, nearest)
    with pytest.raises(
        UsageError,
        match=f"heads={num_heads} does not divide dim={dim}; choose a divisor such as {nearest},",
    ):
        MultiHeadAttention(dim, num_heads, FullAttention())


def test_a_window_sees_a_neighbour() -> None:
    with pytest.raises(
        UsageError,
        match=r"left and WindowAttention\.right are both 0.*set WindowAttention\.left=1 or more",
    ):
        WindowAttention(0, 0)


@pytest.mark.parametrize(
    ("mask", "problem"),
    [
        (
            padding(torch.ones(2, 6, dtype=torch.bool)),
            r"padding\(…\) has the shape \[2, 6\], and \[2, 7\] is needed",
        ),
        (
            padding(torch.ones(3, 7, dtype=torch.bool)),
            r"has the shape \[3, 7\], and \[2, 7\] is needed",
        ),
        (
            segments(torch.ones(2, 4).int(), torch.ones(2, 7).int()),
            r"segments\(…\) has the shape \[2, 4\], and \[2, 5\]",
        ),
        (
            segments(torch.ones(2, 5).int(), torch.ones(2, 8).int()),
            r"segments\(…\) has the shape \[2, 8\], and \[2, 7\]",
        ),
        (
            explicit(torch.ones(1, 1, 5, 6, dtype=torch.bool)),
            r"explicit\(…\) has the shape \[1, 1, 5, 6\], and \[2, 1, 5, 7\]",
        ),
        (causal() & padding(torch.ones(2, 6, dtype=torch.bool)), r"padding\(…\) has the shape"),
    ],
)
def test_a_layer_refuses_a_mask_made_for_other_tokens(mask: Mask, problem: str) -> None:
    layer, x, memory = (
        MultiHeadAttention(4, 2, FullAttention()),
        torch.ones(2, 5, 4),
        torch.ones(2, 7, 4),
    )
    for ask in (layer, layer.weights):
        with pytest.raises(MaskError, match=problem):
            ask(x, memory, mask)
        assert ask(x, memory, explicit(torch.ones(1, 2, 1, 7, dtype=torch.bool))).isfinite().all()


def test_a_layer_refuses_tokens_of_another_width() -> None:
    layer, x = MultiHeadAttention(16, 2, FullAttention()), torch.ones(2, 5, 15)
    with pytest.raises(
        UsageError,
        match=r"x has the shape \[2, 5, 15\], and this attention reads \[batch, time, 16\]; give",
    ):
        layer(x, x, everything())
    use_language("zh")
    with pytest.raises(UsageError, match=r"x 的形状为 \[2, 5, 15\]，而此注意力读取"):
        layer(x, x, everything())


def test_every_row_looks_at_a_row_of_its_own() -> None:
    with pytest.raises(UsageError, match="x has a batch of 2 and memory one of 3"):
        check_tokens(torch.ones(2, 5, 4), torch.ones(3, 5, 4), everything(), dim=4)


@pytest.mark.parametrize(
    ("settings", "relation", "why"),
    [
        (Reformer(num_buckets=2), None, "its keys are its own queries"),
        (Longformer(), None, "its global queries have projections of their own for one sequence"),
        (
            Fused(),
            AlibiRelation(2),
            r"position\.kind=alibi encodes positions inside one sequence",
        ),
    ],
)
def test_what_a_layer_has_for_its_own_sequence_is_not_left_out_in_another(
    settings: AttentionSettings, relation: AlibiRelation | None, why: str
) -> None:
    """An equal tensor is another one: Longformer's second projections and the positions were
    silently missing there."""
    layer = build_attention(
        settings, dim=16, num_heads=2, dropout_rate=0.0, role="encoder", relation=relation
    )
    x = torch.ones(2, 5, 16)
    said = f"{why}; give the same tensor as x and memory, or use a kernel for two sequences"
    asked = (
        partial(layer, x, x.clone(), everything()),
        partial(layer.weights, x, x.clone(), everything()),
    )
    for ask in (*asked, partial(layer.keys_values, x)):
        with pytest.raises(UsageError, match=said):
            ask()
    with torch.no_grad():
        assert layer(x, x, everything()).shape == x.shape
