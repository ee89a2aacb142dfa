"""Encoder and decoder blocks against torch's own layers with copied weights, and the decoder step
by step."""

import pytest
import torch
from torch import nn

from headwise.attention.cache import KeyValueCache
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.masks import Mask, causal, padding
from headwise.attention.multi_head import MultiHeadAttention
from headwise.blocks.decoder_block import DecoderBlock
from headwise.blocks.encoder_block import EncoderBlock
from headwise.blocks.feed_forward import FeedForward
from headwise.blocks.normalization import LayerNorm
from headwise.blocks.residual import Residual

DIM, HEADS, HIDDEN = 15, 3, 23


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    query, key_value = theirs.in_proj_weight.split([DIM, 2 * DIM])
    ours.load_state_dict(
        {
            "query.weight": query,
            "query.bias": theirs.in_proj_bias[:DIM],
            "key_value.weight": key_value,
            "key_value.bias": theirs.in_proj_bias[DIM:],
            "output.weight": theirs.out_proj.weight,
            "output.bias": theirs.out_proj.bias,
        }
    )


def copy_feed_forward(ours: FeedForward, peer: nn.Module) -> None:
    ours.widen.load_state_dict(peer.linear1.state_dict())
    ours.narrow.load_state_dict(peer.linear2.state_dict())


def residual(place: str, theirs: nn.LayerNorm) -> Residual:
    norm = LayerNorm(DIM)
    norm.load_state_dict({"gain": theirs.weight, "shift": theirs.bias})
    return Residual(norm, place=place, dropout_rate=0.0)


def shake(module: nn.Module, generator: torch.Generator) -> None:
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.4, generator=generator)


def attention() -> MultiHeadAttention:
    return MultiHeadAttention(DIM, HEADS, FusedAttention())


def make_decoder(
    place: str, generator: torch.Generator
) -> tuple[DecoderBlock, nn.TransformerDecoderLayer]:
    peer = nn.TransformerDecoderLayer(
        DIM, HEADS, HIDDEN, 0.0, batch_first=True, norm_first=place == "before"
    )
    shake(peer, generator)
    ours = DecoderBlock(
        attention(),
        attention(),
        FeedForward(DIM, HIDDEN, activation="relu"),
        attention_residual=residual(place, peer.norm1),
        cross_residual=residual(place, peer.norm2),
        feed_forward_residual=residual(place, peer.norm3),
    )
    copy_attention(ours.self_attention, peer.self_attn)
    copy_attention(ours.cross_attention, peer.multihead_attn)
    copy_feed_forward(ours.feed_forward, peer)
    return ours, peer


@pytest.mark.parametrize("place", ["before", "after"])
def test_encoder_block_equals_torchs(place: str, generator: torch.Generator) -> None:
    peer = nn.TransformerEncoderLayer(
        DIM, HEADS, HIDDEN, 0.0, batch_first=True, norm_first=place == "before"
    )
    shake(peer, generator)
    ours = EncoderBlock(
        attention(),
        FeedForward(DIM, HIDDEN, activation="relu"),
        attention_residual=residual(place, peer.norm1),
        feed_forward_residual=residual(place, peer.norm2),
    )
    copy_attention(ours.self_attention, peer.self_attn)
    copy_feed_forward(ours.feed_forward, peer)
    x = torch.randn(2, 7, DIM, generator=generator)
    real = torch.tensor([[True] * 7, [True] * 5 + [False] * 2])
    expected = peer(x, src_key_padding_mask=~real)
    torch.testing.assert_close(ours(x, padding(real))[real], expected[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("place", ["before", "after"])
def test_decoder_block_equals_torchs(place: str, generator: torch.Generator) -> None:
    ours, peer = make_decoder(place, generator)
    x, memory = (
        torch.randn(2, 5, DIM, generator=generator),
        torch.randn(2, 7, DIM, generator=generator),
    )
    real = torch.tensor([[True] * 7, [True] * 5 + [False] * 2])
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    expected = peer(x, memory, tgt_mask=future, memory_key_padding_mask=~real)
    given = ours(x, memory, mask=causal(), cross_mask=padding(real))
    torch.testing.assert_close(given, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("width", [1, 3])
def test_decoder_steps_equal_the_whole_and_share_the_source(
    width: int, generator: torch.Generator
) -> None:
    block, _ = make_decoder("before", generator)
    num_sentences, length = 2, 5
    x = torch.randn(num_sentences * width, length, DIM, generator=generator)
    memory = torch.randn(num_sentences, 7, DIM, generator=generator)
    real = torch.tensor([[True] * 7, [True] * 5 + [False] * 2])
    with torch.no_grad():
        cache = KeyValueCache.empty(
            max_length=length, num_rows=len(x), num_heads=HEADS, head_dim=DIM // HEADS, like=memory
        )
        source, watch, steps = block.cross_attention.keys_values(memory), [], []
        for time in range(length):
            one = x[:, time : time + 1]
            steps.append(
                block.step(one, cache, source=source, cross_mask=padding(real), watch=watch)
            )
        copied = memory.repeat_interleave(width, 0)
        cross = padding(real.repeat_interleave(width, 0))
        whole = block(x, copied, mask=causal(), cross_mask=cross)
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, atol=1e-5, rtol=1e-5)
    assert len(watch) == length
    assert watch[0].shape == (num_sentences, HEADS, width, 7)
    torch.testing.assert_close(watch[0].sum(-1), torch.ones(num_sentences, HEADS, width))
    assert watch[0][1, ..., 5:].eq(0).all()


def test_without_a_mask_every_token_is_seen(generator: torch.Generator) -> None:
    block, _ = make_decoder("before", generator)
    x, memory = (
        torch.randn(1, 3, DIM, generator=generator),
        torch.randn(1, 2, DIM, generator=generator),
    )
    with torch.no_grad():
        free = block(x, memory, mask=Mask(), cross_mask=Mask())
        changed = x.clone()
        changed[:, 2, 0] += 5
        assert not torch.allclose(
            block(changed, memory, mask=Mask(), cross_mask=Mask())[:, 0], free[:, 0]
        )
        hidden = block(x, memory, mask=causal(), cross_mask=Mask())
        assert torch.allclose(
            block(changed, memory, mask=causal(), cross_mask=Mask())[:, 0], hidden[:, 0]
        )
