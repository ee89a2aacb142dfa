"""Costs of kernels: each worked by hand, and what a decoder keeps."""

import pytest
import torch
from pydantic import TypeAdapter

from headwise.attention.choices import AttentionSettings, build_attention
from headwise.attention.costs import count_cache, count_products
from headwise.attention.multi_head import MultiHeadAttention

DIM, HEADS, HEAD_DIM = 12, 3, 4


def make(role: str = "encoder", **settings) -> MultiHeadAttention:
    checked = TypeAdapter(AttentionSettings).validate_python(settings)
    return build_attention(checked, dim=DIM, num_heads=HEADS, dropout_rate=0.0, role=role)


def kernel_only(layer: MultiHeadAttention, length: int, *, is_causal: bool = False) -> int:
    linear = sum(
        2 * part.weight.numel() for part in layer.modules() if isinstance(part, torch.nn.Linear)
    )
    return count_products(layer, length, is_causal=is_causal) - length * linear


@pytest.mark.parametrize("kind", ["full", "fused"])
@pytest.mark.parametrize("is_causal", [False, True])
def test_every_query_against_every_key(kind: str, *, is_causal: bool) -> None:
    assert kernel_only(make(kind=kind), 7, is_causal=is_causal) == 4 * 7 * 7 * DIM
    # Between two sequences: 5 keys are projected twice, 7 queries once in and once out.
    between = count_products(make("cross", kind=kind), 7, 5, is_causal=False)
    assert between == 2 * DIM * DIM * (2 * 7 + 2 * 5) + 4 * 7 * 5 * DIM


def test_a_fused_kernel_that_was_told_of_positions_is_counted_too() -> None:
    from headwise.positions.alibi import AlibiRelation

    layer = make(kind="fused")
    layer.relation = AlibiRelation(HEADS)
    assert not layer.is_plain
    assert kernel_only(layer, 7) == 4 * 7 * 7 * DIM


def test_another_score_costs_its_own_products() -> None:
    layer = make(kind="full", score={"kind": "additive", "hidden": 5})
    maps = 2 * 7 * HEADS * 2 * HEAD_DIM * 5  # queries and keys, each head
    votes, mean = 2 * 7 * 7 * HEADS * 5, 2 * 7 * 7 * DIM
    assert kernel_only(layer, 7) == maps + votes + mean


def test_a_window_fetches_blocks() -> None:
    # Blocks of 16 queries; 10 before and 10 after them reach into ceil(20 / 16) + 1 = 3 blocks of
    # keys. 100 tokens are 7 blocks.
    assert kernel_only(make(kind="window", left=10, right=10), 100) == 7 * 4 * 16 * 48 * DIM
    # Causally only the 10 before: two blocks.
    assert (
        kernel_only(make("decoder", kind="window", left=10, right=10), 100, is_causal=True)
        == 7 * 4 * 16 * 32 * DIM
    )
    # Rows no longer than that are looked at whole.
    assert kernel_only(make(kind="window", left=10, right=10), 32) == 4 * 32 * 32 * DIM


def test_longformer_also_pays_for_global_tokens() -> None:
    # Near: 7 blocks of 16, three blocks of keys and one global key, filled up to eight. Far: in
    # each block of keys up to 16 sentences may begin, and one may reach into it from before, filled
    # up to 24. The second set of projections is linear and counted apart.
    near, far = 7 * 4 * 16 * (48 + 8) * DIM, 7 * 4 * 24 * 16 * DIM
    assert kernel_only(make(kind="longformer", width=20), 100) == near + far
    assert (
        kernel_only(make(kind="longformer", width=20, num_global=0), 100) == 7 * 4 * 16 * 48 * DIM
    )


def test_bigbird_also_pays_for_global_and_random_blocks() -> None:
    # Blocks of 4, one neighbour each way out of step by up to 3: ceil(14 / 4) + 1 = 5 blocks of
    # band, one first and one last block, random ones of three places (a block of queries touches at
    # most three blocks of sentences). Far: of each block of keys, the first and last block of its
    # sentence and the three around. Both are filled up to whole eights.
    layer = make(kind="bigbird", block=4, num_random_blocks=2)
    near, far = 25 * 4 * 4 * (20 + 4 + 4 + 3 * 2 * 4 + 4) * DIM, 25 * 4 * 4 * (4 + 4 + 12 + 4) * DIM
    assert kernel_only(layer, 100) == near + far


@pytest.mark.parametrize(("kind", "num_features"), [("linear", HEAD_DIM), ("performer", 6)])
def test_features_cost_the_same_for_every_token(kind: str, num_features: int) -> None:
    settings = {"num_features": num_features} if kind == "performer" else {}
    layer = make(kind=kind, **settings)
    width, chunk = 8, 128  # 4 values and a one, rounded up to 8
    making = 2 * 2 * num_features * HEAD_DIM if kind == "performer" else 0
    # Short rows: the masked table, n² products of features and n² of values.
    assert kernel_only(layer, 50) == HEADS * 50 * (making + 2 * 50 * (num_features + width))
    # Long rows, 5 chunks: inside a chunk the same; over borders a sum is made and read for each of
    # two directions, and carried by 5 × 5.
    inside, sums = 2 * chunk * (num_features + width), 2 * 4 * num_features * width
    carried = 2 * 2 * 5 * 5 * num_features * width
    assert kernel_only(layer, 5 * chunk) == HEADS * (5 * chunk * (making + inside + sums) + carried)
    causal = HEADS * (5 * chunk * (making + inside + sums // 2) + carried // 2)
    assert kernel_only(make("decoder", kind=kind, **settings), 5 * chunk, is_causal=True) == causal


def test_reformer_hashes_and_looks_into_three_blocks_in_every_round() -> None:
    layer = make(kind="reformer", num_buckets=8, num_rounds=2, bucket_size=5)
    hashing = HEADS * 2 * 2 * 100 * HEAD_DIM * 4  # half the buckets, the others are their opposites
    # Sorted, 20 blocks of 5 look at themselves and both neighbours, in each round.
    looking = 2 * 20 * 4 * 5 * 15 * DIM
    assert kernel_only(layer, 100) == hashing + looking
    causal = kernel_only(
        make("decoder", kind="reformer", num_buckets=8, num_rounds=2, bucket_size=5),
        100,
        is_causal=True,
    )
    assert causal == hashing + looking * 2 // 3


def test_linformer_compares_with_summaries() -> None:
    rank, length = 5, 100  # one chunk: masked tables
    layer = make(kind="linformer", rank=rank, max_length=128)
    scores = 2 * length * length * HEADS * (HEAD_DIM + rank)
    present = 2 * length * length * (1 + rank)  # for one head
    output = 2 * length * length * HEADS * (rank + HEAD_DIM)
    assert kernel_only(layer, length) == scores + present + output


def test_long_sentences_cost_by_length_whatever_the_kernel() -> None:
    for settings in (
        {"kind": "window", "left": 16, "right": 16},
        {"kind": "longformer", "width": 32},
        {"kind": "bigbird", "block": 16},
        {"kind": "linear"},
        {"kind": "performer", "num_features": 16},
        {"kind": "reformer", "bucket_size": 16, "num_rounds": 1},
        {"kind": "linformer", "rank": 8, "max_length": 8192},
    ):
        layer = make(**settings)
        short, long = (kernel_only(layer, length) for length in (2048, 8192))
        assert 3.9 * short < long < 4.1 * short, settings
        assert long < 4 * 8192**2 * DIM, settings


def test_what_a_decoder_keeps() -> None:
    assert count_cache(make("decoder", kind="fused")) == (2 * DIM, 0)
    assert count_cache(make("decoder", kind="reformer")) == (2 * DIM, 0)
    assert count_cache(make("decoder", kind="window", left=6, right=0)) == (0, 2 * 2 * 7 * DIM)
    assert count_cache(make("decoder", kind="linear")) == (0, HEADS * HEAD_DIM * 8)
    assert count_cache(make("decoder", kind="performer", num_features=6)) == (0, HEADS * 6 * 8)
