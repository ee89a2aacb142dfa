"""Multi-head attention against torch.nn.MultiheadAttention with the same weights, and its ways of
being called."""

import pytest
import torch
from torch import nn

from headwise.attention.cache import KeyValueCache
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.masks import Mask, causal, padding
from headwise.attention.multi_head import Kernel, MultiHeadAttention

DIM, HEADS, BATCH, QUERIES, KEYS = 15, 3, 2, 5, 7


def peer_of(ours: MultiHeadAttention) -> nn.MultiheadAttention:
    peer = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
    with torch.no_grad():
        peer.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key_value.weight]))
        peer.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key_value.bias]))
        peer.out_proj.weight.copy_(ours.output.weight)
        peer.out_proj.bias.copy_(ours.output.bias)
    return peer


@pytest.mark.parametrize("kernel", [FullAttention(), FusedAttention()], ids=["full", "fused"])
def test_equals_torch_outputs_weights_and_gradients(
    kernel: Kernel, generator: torch.Generator
) -> None:
    ours = MultiHeadAttention(DIM, HEADS, kernel)
    for parameter in ours.parameters():
        nn.init.normal_(parameter, std=0.5, generator=generator)
    peer = peer_of(ours)
    x, memory = (
        torch.randn(BATCH, QUERIES, DIM, generator=generator),
        torch.randn(BATCH, KEYS, DIM, generator=generator),
    )
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    output = ours(x, memory, padding(real))
    expected, weights = peer(x, memory, memory, key_padding_mask=~real, average_attn_weights=False)
    torch.testing.assert_close(output, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        ours.weights(x, memory, padding(real)), weights, atol=1e-5, rtol=1e-5
    )
    for result in (output, expected):
        result.square().sum().backward()
    theirs = peer.in_proj_weight.grad
    torch.testing.assert_close(
        torch.cat([ours.query.weight.grad, ours.key_value.weight.grad]),
        theirs,
        rtol=1e-4,
        atol=1e-4,
    )


def test_keys_and_values_may_be_kept(generator: torch.Generator) -> None:
    layer = MultiHeadAttention(DIM, HEADS, FusedAttention())
    x, memory = (
        torch.randn(BATCH, QUERIES, DIM, generator=generator),
        torch.randn(BATCH, KEYS, DIM, generator=generator),
    )
    kept = layer.keys_values(memory)
    assert kept[0].shape == kept[1].shape == (BATCH, HEADS, KEYS, DIM // HEADS)
    assert layer.attend(x, kept, Mask()).equal(layer(x, memory, Mask()))
    assert layer.weights_over(x, kept, Mask()).equal(layer.weights(x, memory, Mask()))


def test_steps_equal_the_whole(generator: torch.Generator) -> None:
    layer = MultiHeadAttention(DIM, HEADS, FusedAttention())
    x = torch.randn(BATCH, KEYS, DIM, generator=generator)
    with torch.no_grad():
        cache = KeyValueCache.empty(
            max_length=KEYS, num_rows=BATCH, num_heads=HEADS, head_dim=DIM // HEADS, like=x
        )
        steps = [layer.step(x[:, time : time + 1], cache) for time in range(KEYS)]
        torch.testing.assert_close(
            torch.cat(steps, dim=1), layer(x, x, causal()), atol=1e-6, rtol=1e-5
        )


def test_bias_is_an_option() -> None:
    layer = MultiHeadAttention(DIM, HEADS, FullAttention(), bias=False)
    assert sum(parameter.numel() for parameter in layer.parameters()) == 4 * DIM * DIM
    x = torch.zeros(1, 2, DIM)
    assert layer(x, x, Mask()).eq(0).all()
