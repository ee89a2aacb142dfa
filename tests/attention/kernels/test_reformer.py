"""Reformer: errors that fall with the rounds, gradients, the hash of transformers, a decoder, and
what it shows."""

import itertools

import pytest
import torch

from headwise.attention.choices import Reformer, build_attention
from headwise.attention.kernels.reformer import ReformerAttention
from headwise.attention.masks import Mask, causal, segments
from headwise.errors import SettingsError, UsageError
from headwise.randomness import torch_generator
from tests.laws.references import SharedQueryKey


def test_twice_the_rounds_lower_the_error_by_1_7_or_more() -> None:
    """Random vectors, 256 of them, buckets of 32 on average, as in the reference measurement (3.05
    … 0.13 for 1 … 32 rounds)."""
    generator = torch_generator("rounds")
    q, v = (torch.randn(2, 4, 256, 64, generator=generator) for _ in range(2))
    exact, errors = SharedQueryKey()(q, q, v, Mask()), []
    for num_rounds in (1, 2, 4, 8, 16):
        kernel = ReformerAttention(64, num_buckets=8, num_rounds=num_rounds, window=32)
        output = kernel(q, q, v, Mask())
        errors.append(((output - exact).square().mean() / exact.square().mean()).item())
    assert all(fewer >= 1.7 * more for fewer, more in itertools.pairwise(errors)), errors


def test_buckets_are_those_of_transformers() -> None:
    from transformers.models.reformer.modeling_reformer import LSHSelfAttention, ReformerConfig

    config = ReformerConfig(
        num_attention_heads=2,
        attention_head_size=8,
        hidden_size=16,
        num_hashes=3,
        num_buckets=6,
        hash_seed=7,
        is_decoder=False,
    )
    peer = LSHSelfAttention(config)
    q = torch.randn(2, 2, 24, 8, generator=torch_generator("hash"))
    kernel = ReformerAttention(8, num_buckets=6, num_rounds=3, window=4)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        rotations = torch.randn(2, 8, 3, 3)
        theirs = peer._hash_vectors(q, 3, None).view(2, 2, 3, 24) % 6
    for head in range(2):
        kernel.rotations.copy_(rotations[head].transpose(0, 1))
        assert torch.equal(kernel._buckets(q)[:, head], theirs[:, head])


@pytest.mark.parametrize("mask", [Mask(), causal()])
def test_gradients_hold_away_from_the_borders_of_buckets(mask: Mask) -> None:
    kernel = ReformerAttention(5, num_buckets=2, num_rounds=2, window=2)
    q, v = (
        torch.randn(1, 1, 7, 5, generator=torch_generator(name), dtype=torch.float64)
        for name in "qv"
    )
    leaves = [q.requires_grad_(), v.requires_grad_()]
    assert torch.autograd.gradcheck(lambda q, v: kernel(q, q, v, mask), leaves)


def test_rounds_join_to_one_softmax_over_all_keys_met() -> None:
    """The output, computed by rounds with a correction for keys met twice, is the table of
    `weights` times the values."""
    q, v = (torch.randn(2, 3, 61, 11, generator=torch_generator(name)) for name in "qv")
    run = torch.tensor([[1] * 17 + [2] * 40 + [0] * 4, [1] * 61])
    kernel = ReformerAttention(11, num_buckets=4, num_rounds=5, window=3)
    for mask in (Mask(), causal(), segments(run, run), causal() & segments(run, run)):
        assert torch.allclose(kernel(q, q, v, mask), kernel.weights(q, q, mask) @ v, atol=1e-5)


def test_more_buckets_than_tokens_leave_everyone_to_himself() -> None:
    q, v = (torch.randn(1, 1, 3, 64, generator=torch_generator(name)) for name in "qv")
    assert torch.allclose(
        ReformerAttention(64, num_buckets=4096, num_rounds=1, window=2)(q, q, v, Mask()), v
    )


def test_a_bucket_size_beyond_the_row_costs_no_more_than_the_row() -> None:
    """65,536 places to either side would be four billion scores a block."""
    q, v = (torch.randn(1, 1, 31, 8, generator=torch_generator(name)) for name in "qv")
    outputs = [
        ReformerAttention(8, num_buckets=2, num_rounds=2, window=window)(q, q, v, Mask())
        for window in (31, 65536)
    ]
    torch.testing.assert_close(*outputs)


def test_in_a_decoder_steps_equal_the_whole() -> None:
    layer = build_attention(
        Reformer(num_buckets=2, num_rounds=2, bucket_size=3),
        dim=12,
        num_heads=3,
        dropout_rate=0.0,
        role="decoder",
    )
    x = torch.randn(2, 13, 12, generator=torch_generator("decoder"))
    cache = layer.make_cache(max_length=13, num_rows=2, like=x)
    steps = torch.cat([layer.step(x[:, time : time + 1], cache) for time in range(13)], dim=1)
    assert torch.allclose(steps, layer(x, x, causal()), atol=1e-5)


def test_other_sequences_are_refused() -> None:
    with pytest.raises(SettingsError, match="cross_attention"):
        build_attention(Reformer(), dim=8, num_heads=2, dropout_rate=0.0, role="cross")
    kernel = ReformerAttention(4, num_buckets=2, num_rounds=1, window=2)
    with pytest.raises(UsageError, match="given 3 queries and 5 keys"):
        kernel(torch.zeros(1, 1, 3, 4), torch.zeros(1, 1, 5, 4), torch.zeros(1, 1, 5, 4), Mask())


def test_long_keys_are_cut_to_length_one_in_float16_too() -> None:
    """Their length is infinite there, and keys of length zero would all look alike."""
    q, v = (torch.randn(1, 2, 13, 16, generator=torch_generator("long", name)) for name in "qv")
    q, v = (q / q.abs().max() * 2e4).half(), v.half()
    kernel = ReformerAttention(16, num_buckets=2, num_rounds=2, window=13)
    precise = kernel(q.double(), q.double(), v.double(), Mask())
    torch.testing.assert_close(kernel(q, q, v, Mask()).double(), precise, atol=2e-3, rtol=2e-3)
    torch.testing.assert_close(
        (kernel.weights(q, q, Mask()) @ v).double(), precise, atol=2e-3, rtol=2e-3
    )
