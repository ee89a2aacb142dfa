"""Linformer: the package's numbers with its weights, its three ways of sharing, and what it
refuses."""

import pytest
import torch
from linformer import LinformerSelfAttention

from headwise.attention.choices import Linformer, build_attention
from headwise.attention.kernels.linear import LinearAttention
from headwise.attention.kernels.linformer import LinformerAttention
from headwise.attention.masks import Mask, causal, padding, segments
from headwise.errors import MaskError, SettingsError, UsageError
from headwise.models.choices import (
    DecoderSettings,
    EncoderDecoderSettings,
    StackSettings,
    build_model,
)
from headwise.randomness import torch_generator
from headwise.settings import check_settings
from headwise.weights import weights_of


@pytest.mark.parametrize("length", [23, 17])
def test_equals_the_package_with_its_weights(length: int) -> None:
    peer = LinformerSelfAttention(24, 23, k=7, heads=3)
    layer = build_attention(
        Linformer(rank=7, max_length=23), dim=24, num_heads=3, dropout_rate=0.0, role="encoder"
    )
    with torch.no_grad():
        for bias in (layer.query.bias, layer.key_value.bias):
            bias.zero_()
        layer.query.weight.copy_(peer.to_q.weight)
        layer.key_value.weight.copy_(torch.cat([peer.to_k.weight, peer.to_v.weight]))
        layer.output.load_state_dict(peer.to_out.state_dict())
        kernel = layer.kernel
        assert isinstance(kernel, LinformerAttention)
        kernel.key_summary.copy_(peer.proj_k)
        kernel.value_summary.copy_(peer.proj_v)
    x = torch.randn(2, length, 24, generator=torch_generator("linformer"))
    assert torch.allclose(layer(x, x, Mask()), peer(x), atol=1e-5)


def test_filling_adds_nothing() -> None:
    kernel = LinformerAttention(5, 31)
    q, k, v = (torch.randn(1, 2, 9, 4, generator=torch_generator(name)) for name in "qkv")
    real = torch.arange(9)[None] < 6
    alone = kernel(q[:, :, :6], k[:, :, :6], v[:, :, :6], Mask())
    assert torch.allclose(kernel(q, k, v, padding(real))[:, :, :6], alone, atol=1e-6)


def test_weights_give_the_output() -> None:
    kernel = LinformerAttention(5, 31, chunk=4)
    q, k, v = (torch.randn(1, 2, 19, 4, generator=torch_generator(name)) for name in "qkv")
    run = torch.tensor([[1] * 7 + [2] * 10 + [0] * 2])
    for mask in (Mask(), segments(run, run)):
        assert torch.allclose(kernel.weights(q, k, mask) @ v, kernel(q, k, v, mask), atol=1e-5)


def _model(sharing: str) -> torch.nn.Module:
    kind = Linformer(rank=3, max_length=17, sharing=sharing)  # type: ignore[arg-type]
    stack = StackSettings(layers=2, heads=2, attention=kind)
    decoder = DecoderSettings(layers=2, heads=2, cross_attention=kind)
    settings = EncoderDecoderSettings(dim=8, encoder=stack, decoder=decoder)
    return build_model(
        settings, source_size=31, target_size=31, generator=torch_generator("linformer")
    )


@pytest.mark.parametrize(("sharing", "expected"), [("heads", 8), ("keys_values", 4), ("layers", 2)])
def test_shared_summaries_are_stored_once(sharing: str, expected: int) -> None:
    """Two stacks of two layers: encoder, and from the decoder to the source."""
    names = [name for name in weights_of(_model(sharing)) if "summary" in name]
    assert len(names) == expected


def test_a_summary_is_no_longer_than_the_text() -> None:
    with pytest.raises(
        SettingsError,
        match=r"attention.rank=20000 is over attention.max_length=512.*attention.rank=512 or less",
    ):
        check_settings(Linformer, {"rank": 20000})
    with pytest.raises(SettingsError, match=r"attention.rank=64 is over attention.max_length=63"):
        check_settings(Linformer, {"rank": 64, "max_length": 63})
    assert (
        Linformer(max_length=13).rank,
        Linformer(max_length=67).rank,
        Linformer(rank=13, max_length=13).rank,
    ) == (
        13,
        64,
        13,
    )
    assert Linformer.model_validate(Linformer(max_length=13).model_dump()) == Linformer(
        max_length=13
    )


def test_a_decoder_and_too_long_rows_are_refused_with_a_way_out() -> None:
    with pytest.raises(
        SettingsError, match="use kind=full, fused, window, linear, performer or reformer there"
    ):
        build_attention(Linformer(), dim=8, num_heads=2, dropout_rate=0.0, role="decoder")
    x = torch.zeros(1, 1, 9, 4)
    with pytest.raises(
        UsageError, match=r"at most max_length=8 tokens and got a row of 9.*full, fused, .*window"
    ):
        LinformerAttention(3, 8)(x, x, x, Mask())


def test_a_future_that_another_kernel_has_prepared_is_refused_too() -> None:
    """What is laid on a line for a decoder looks like any other line; its order must not be taken
    for words that are all there."""
    x, prepared = (
        torch.zeros(1, 1, 3, 2),
        LinearAttention().prepare(causal(), 3, 3, torch.device("cpu")),
    )
    for ask in (
        lambda kernel: kernel(x, x, x, prepared),
        lambda kernel: kernel.prepare(prepared, 3, 3, x.device),
    ):
        with pytest.raises(MaskError, match=r"kind=linformer cannot honour a mask of kind causal"):
            ask(LinformerAttention(2, 3))
