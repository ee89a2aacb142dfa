"""Buckets: transformers' T5, and the values known for 32 buckets up to 128."""

import pytest
import torch
from pydantic import TypeAdapter, ValidationError
from transformers import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from headwise.attention.kernels.full import FullAttention
from headwise.attention.masks import Mask
from headwise.positions.choices import PositionSettings
from headwise.positions.t5 import T5Relation, distance_buckets

HEADS, TIME = 3, 211


@pytest.mark.parametrize(
    ("is_causal", "known"),
    [
        (
            False,
            {-200: 15, -64: 14, -17: 10, -8: 8, -7: 7, -1: 1, 0: 0, 1: 17, 8: 24, 64: 30, 200: 31},
        ),
        (True, {-200: 31, -64: 26, -17: 16, -8: 8, 0: 0, 5: 0}),
    ],
)
def test_known_buckets(is_causal: bool, known: dict[int, int]) -> None:
    found = distance_buckets(
        torch.tensor(list(known)), num_buckets=32, max_distance=128, is_causal=is_causal
    )
    assert found.tolist() == list(known.values())


@pytest.mark.parametrize("is_causal", [False, True])
def test_the_bias_is_t5s(is_causal: bool, generator: torch.Generator) -> None:
    config = T5Config(
        d_model=12, d_kv=4, num_heads=HEADS, relative_attention_num_buckets=16, is_decoder=is_causal
    )
    config.relative_attention_max_distance = 50
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    ours = T5Relation(HEADS, num_buckets=16, max_distance=50, is_causal=is_causal)
    with torch.no_grad():
        ours.bucket_bias.normal_(generator=generator)
        theirs.relative_attention_bias.weight.copy_(ours.bucket_bias.T)
    bias = ours.bias(torch.zeros(1, HEADS, TIME, 4), num_keys=TIME, offset=0)
    expected = theirs.compute_bias(TIME, TIME)
    torch.testing.assert_close(bias.dense(TIME, TIME), expected)
    assert bias.table.shape[1] == 51 if is_causal else 101


def test_dividing_by_the_root_is_a_matter_of_the_query_weights(generator: torch.Generator) -> None:
    q, k, v = (torch.randn(1, HEADS, 5, 4, generator=generator) for _ in range(3))
    bias = torch.randn(1, HEADS, 5, 5, generator=generator)
    like_t5 = (q @ k.transpose(-1, -2) + bias).softmax(-1) @ v
    torch.testing.assert_close(FullAttention()(q * 2.0, k, v, Mask(), bias=bias), like_t5)


def test_too_near_a_limit_is_refused() -> None:
    with pytest.raises(
        ValidationError,
        match="max_distance=8 leaves nothing for 16 buckets to share; choose more than 8",
    ):
        TypeAdapter(PositionSettings).validate_python(
            {"kind": "t5", "num_buckets": 16, "max_distance": 8}
        )
