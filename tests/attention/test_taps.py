"""Taps: the map a layer used, without changing what it computes."""

import torch

from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.masks import causal
from headwise.attention.multi_head import MultiHeadAttention
from headwise.attention.taps import tap_attention

DIM, HEADS = 15, 5


def test_weights_times_values_are_the_output(generator: torch.Generator) -> None:
    layer, other = (MultiHeadAttention(DIM, HEADS, FusedAttention()) for _ in range(2))
    x = torch.randn(2, 7, DIM, generator=generator)
    with tap_attention({"mine": layer}) as maps:
        output = layer(x, x, causal())
        other(x, x, causal())
    assert list(maps) == ["mine"]
    assert maps["mine"].shape == (2, HEADS, 7, 7)
    assert not maps["mine"].requires_grad
    _, v = layer.keys_values(x)
    mixed = (maps["mine"] @ v).transpose(1, 2).flatten(2)
    torch.testing.assert_close(layer.output(mixed), output, atol=1e-5, rtol=1e-5)


def test_a_closed_tap_collects_no_more(generator: torch.Generator) -> None:
    layer = MultiHeadAttention(DIM, HEADS, FusedAttention())
    x = torch.randn(1, 3, DIM, generator=generator)
    with tap_attention({"mine": layer}) as maps:
        before = layer(x, x, causal())
    first = maps["mine"]
    layer(2 * x, x, causal())
    assert maps["mine"] is first
    assert layer(x, x, causal()).equal(before)


def test_a_tap_closes_when_the_model_fails(generator: torch.Generator) -> None:
    layer = MultiHeadAttention(DIM, HEADS, FusedAttention())
    try:
        with tap_attention({"mine": layer}):
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert len(layer._forward_pre_hooks) == 0
