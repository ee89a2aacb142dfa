"""The reference kernel itself: numbers worked by hand, torch's kernel, and weights that are
probabilities."""

import math

import torch
import torch.nn.functional as F

from headwise.attention.kernels.full import FullAttention, attention_weights
from headwise.attention.masks import Mask, causal, explicit, padding
from headwise.attention.normalizers import masked_softmax
from headwise.randomness import torch_generator


def test_two_keys_worked_by_hand() -> None:
    # head_dim 4, so scores are dot products halved: ln 3 and 0, hence weights 3/4 and 1/4.
    q = torch.tensor([[[[2 * math.log(3), 0.0, 0.0, 0.0]]]])
    k = torch.tensor([[[[1.0, 5.0, 0.0, 0.0], [0.0, 7.0, 0.0, 0.0]]]])
    v = torch.tensor([[[[8.0], [16.0]]]])
    assert torch.allclose(attention_weights(q, k, Mask()), torch.tensor([0.75, 0.25]))
    assert torch.allclose(FullAttention()(q, k, v, Mask()), torch.tensor([10.0]))
    bias = torch.tensor([[[[-math.log(3), 0.0]]]])
    assert torch.allclose(FullAttention()(q, k, v, Mask(), bias=bias), torch.tensor([12.0]))
    hidden = padding(torch.tensor([[False, True]]))
    assert torch.allclose(FullAttention()(q, k, v, hidden), torch.tensor([16.0]))


def test_equals_torch(generator: torch.Generator) -> None:
    q, k, v = (torch.randn(2, 3, 5, 7, generator=generator) for _ in range(3))
    torch.testing.assert_close(
        FullAttention()(q, k, v, Mask()), F.scaled_dot_product_attention(q, k, v)
    )
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(FullAttention()(q, k, v, causal()), expected)


def test_weights_sum_to_one_or_to_zero(generator: torch.Generator) -> None:
    q, k = (
        torch.randn(2, 3, 5, 7, generator=generator),
        torch.randn(2, 3, 11, 7, generator=generator),
    )
    allowed = torch.rand(2, 1, 5, 11, generator=generator) < 0.3
    allowed[1, 0, 2] = False
    weights = attention_weights(q, k, explicit(allowed))
    sums = allowed.any(-1).expand(2, 3, 5).float()
    torch.testing.assert_close(weights.sum(-1), sums)
    assert weights[~allowed.expand_as(weights)].eq(0).all()


def test_softmax_is_that_of_the_visible_keys_alone(generator: torch.Generator) -> None:
    scores = 30 * torch.randn(1, 1, 1, 7, generator=generator)
    visible = torch.tensor([0, 2, 3, 6])
    allowed = torch.zeros(1, 1, 1, 7, dtype=torch.bool)
    allowed[..., visible] = True
    torch.testing.assert_close(
        masked_softmax(scores, allowed)[..., visible], scores[..., visible].softmax(-1)
    )
    assert masked_softmax(scores, None).equal(scores.softmax(-1))


def test_softmax_is_precise_whatever_the_input() -> None:
    # 300 equal keys in bfloat16: a sum in bfloat16 would stop growing at 256.
    scores = torch.zeros(1, 1, 1, 300, dtype=torch.bfloat16)
    weights = masked_softmax(scores, torch.ones(1, 1, 1, 300, dtype=torch.bool))
    assert weights.dtype == torch.bfloat16
    assert abs(weights[0, 0, 0, 0].item() * 300 - 1) < 0.005


def test_float16_does_not_overflow(generator: torch.Generator) -> None:
    q, k, v = (torch.randn(1, 2, 5, 64, generator=generator) for _ in range(3))
    precise = attention_weights(100 * q, 100 * k, Mask())
    assert (100 * q @ (100 * k).transpose(-2, -1)).abs().max() > torch.finfo(torch.float16).max
    low = attention_weights((100 * q).half(), (100 * k).half(), Mask())
    assert low.dtype == torch.float16
    assert low.isfinite().all()
    assert low.argmax(-1).equal(precise.argmax(-1))
    assert FullAttention()((100 * q).half(), (100 * k).half(), v.half(), Mask()).isfinite().all()


def test_dropout_needs_training_and_a_rate() -> None:
    q = torch.randn(1, 1, 5, 7, generator=torch_generator("dropout"))
    kernel = FullAttention(0.5)
    assert kernel(q, q, q, Mask()).equal(FullAttention()(q, q, q, Mask(), training=True))
    assert not kernel(q, q, q, Mask(), training=True).equal(kernel(q, q, q, Mask()))
