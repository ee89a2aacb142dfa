"""Linear attention: worked by hand, in low precision, in a decoder, and under a tap."""

import math

import pytest
import torch

from headwise.attention.choices import Linear, build_attention
from headwise.attention.kernels.linear import LinearAttention, SumCache
from headwise.attention.masks import Mask, causal, segments
from headwise.attention.taps import tap_attention
from headwise.randomness import torch_generator
from tests.laws.references import QuadraticLinear


def test_a_case_worked_by_hand() -> None:
    """One feature: φ(0) = 1, φ(1) = 2, φ(-1) = 1/e; the query's own feature cancels."""
    q, k, v = (
        torch.tensor(x)[None, None, :, None]
        for x in ([5.0, -3.0], [0.0, 1.0, -1.0], [10.0, 20.0, 30.0])
    )
    mean = (10 + 2 * 20 + 30 / math.e) / (1 + 2 + 1 / math.e)
    assert torch.allclose(
        LinearAttention()(q, k, v, Mask())[0, 0, :, 0], torch.tensor([mean, mean])
    )
    first, second = LinearAttention()(q, k[:, :, :2], v[:, :, :2], causal())[0, 0, :, 0].tolist()
    assert first == pytest.approx(10)
    assert second == pytest.approx((10 + 2 * 20) / 3)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sums_are_kept_in_fp32(dtype: torch.dtype) -> None:
    """8,191 equal keys: in bf16 a running sum would stop growing at 256, in fp16 overflow."""
    q, k = (torch.full((1, 1, 8191, 4), 3.0, dtype=dtype) for _ in range(2))
    v = torch.full((1, 1, 8191, 4), 60.0, dtype=dtype)
    for mask in (Mask(), causal()):
        assert torch.allclose(
            LinearAttention()(q, k, v, mask).float(), torch.tensor(60.0), rtol=1e-2
        )


def test_autocast_does_not_narrow_the_sums() -> None:
    generator = torch_generator("autocast")
    q, k, v = (torch.randn(1, 2, 300, 8, generator=generator) for _ in range(3))
    expected = QuadraticLinear()(q.double(), k.double(), v.double(), causal()).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.allclose(LinearAttention()(q, k, v, causal()), expected, atol=1e-5)


def test_in_a_decoder_steps_equal_the_whole_and_the_memory_does_not_grow() -> None:
    layer = build_attention(Linear(), dim=12, num_heads=3, dropout_rate=0.0, role="decoder")
    x = torch.randn(2, 11, 12, generator=torch_generator("decoder"))
    whole = layer(x, x, causal())
    # Shorter than the sequence: it holds any length.
    cache = layer.make_cache(max_length=5, num_rows=2, like=x)
    assert isinstance(cache, SumCache)
    size = cache.sums.numel()
    steps = torch.cat([layer.step(x[:, time : time + 1], cache) for time in range(11)], dim=1)
    assert torch.allclose(steps, whole, atol=1e-5)
    assert cache.sums.numel() == size


def test_a_tap_shows_the_implied_weights() -> None:
    layer = build_attention(Linear(), dim=12, num_heads=3, dropout_rate=0.0, role="encoder")
    x = torch.randn(2, 7, 12, generator=torch_generator("tap"))
    run = torch.tensor([[1, 1, 1, 2, 2, 2, 0], [1, 1, 1, 1, 1, 1, 1]])
    mask = segments(run, run)
    with tap_attention({"it": layer}) as maps:
        output = layer(x, x, mask)
    _, _, v = layer.project(x)
    assert torch.allclose(
        layer.output((maps["it"] @ v).transpose(1, 2).flatten(2)), output, atol=1e-6
    )
