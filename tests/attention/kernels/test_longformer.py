"""Longformer against transformers' with copied weights: the window, the global tokens, their own
projections."""

import pytest
import torch
from pydantic import ValidationError
from transformers import LongformerConfig
from transformers.models.longformer.modeling_longformer import LongformerSelfAttention

from headwise.attention.choices import Longformer, build_attention
from headwise.attention.kernels.longformer import LongformerAttention, LongformerMultiHead
from headwise.attention.masks import Mask, causal, padding, segments
from headwise.attention.multi_head import MultiHeadAttention
from headwise.attention.taps import tap_attention
from headwise.errors import MaskError, SettingsError
from headwise.initialization import initialize
from headwise.positions.alibi import AlibiRelation
from headwise.randomness import torch_generator

BATCH, TIME, HEADS, DIM, WINDOW = 2, 48, 3, 21, 8


def ours(num_global: int) -> MultiHeadAttention:
    settings = Longformer(width=WINDOW, num_global=num_global)
    module = build_attention(settings, dim=DIM, num_heads=HEADS, dropout_rate=0.0, role="encoder")
    for number, parameter in enumerate(module.parameters()):
        parameter.data.normal_(0, 0.3, generator=torch_generator("longformer", number))
    return module.double()


def theirs(module: MultiHeadAttention) -> LongformerSelfAttention:
    config = LongformerConfig(
        hidden_size=DIM,
        num_attention_heads=HEADS,
        attention_window=[WINDOW],
        attention_probs_dropout_prob=0.0,
    )
    peer = LongformerSelfAttention(config, layer_id=0).double().eval()
    pairs = [("query", module.query), ("key", module.key_value), ("value", module.key_value)]
    if isinstance(module, LongformerMultiHead):
        pairs += [("query_global", module.global_query), ("key_global", module.global_key_value)]
        pairs += [("value_global", module.global_key_value)]
    for name, layer in pairs:
        half = slice(DIM) if "value" not in name else slice(DIM, 2 * DIM)
        getattr(peer, name).weight.data.copy_(layer.weight[half])
        getattr(peer, name).bias.data.copy_(layer.bias[half])
    return peer


@pytest.mark.parametrize("num_global", [0, 1, 3])
def test_equals_transformers(num_global: int) -> None:
    module = ours(num_global)
    real = torch.arange(TIME) < torch.tensor([[TIME], [37]])
    x = torch.randn(BATCH, TIME, DIM, generator=torch_generator("x"), dtype=torch.float64)
    given = {}
    module.output.register_forward_pre_hook(lambda layer, inputs: given.update(heads=inputs[0]))
    module(x, x, padding(real))
    is_global = (torch.arange(TIME) < num_global).expand(BATCH, -1)
    told = torch.where(is_global, 10000.0, torch.where(real, 0.0, -10000.0)).double()
    expected = theirs(module)(
        x,
        attention_mask=told,
        is_index_masked=told < 0,
        is_index_global_attn=told > 0,
        is_global_attn=num_global > 0,
    )[0]
    assert torch.allclose(given["heads"][real], expected[real], atol=2e-6)  # its softmax is in fp32


def test_packed_sentences_are_as_by_themselves() -> None:
    module, lengths = ours(2), (31, 1, 11)
    x = torch.randn(1, TIME, DIM, generator=torch_generator("packed"), dtype=torch.float64)
    numbers = torch.tensor([[1] * 31 + [2] + [3] * 11 + [0] * 5])
    whole = module(x, x, segments(numbers, numbers))
    start = 0
    for length in lengths:
        part = x[:, start : start + length]
        assert torch.allclose(module(part, part, Mask()), whole[:, start : start + length])
        start += length


def test_the_tapped_map_gives_the_output() -> None:
    module = ours(1)
    numbers = torch.tensor([[1] * 31 + [2] + [3] * 11 + [0] * 5])
    x = torch.randn(1, TIME, DIM, generator=torch_generator("tap"), dtype=torch.float64)
    with tap_attention({"here": module}) as maps:
        output = module(x, x, segments(numbers, numbers))
    assert isinstance(module, LongformerMultiHead)
    values = [
        module._split(layer(x).chunk(2, -1)[1])
        for layer in (module.key_value, module.global_key_value)
    ]
    near, far = (module._merge(maps["here"] @ v) for v in values)
    wide = torch.zeros(TIME, dtype=torch.bool)
    wide[[0, 31, 32, 43]] = True
    assert torch.allclose(torch.where(wide[:, None], far, near), output)


def test_weights_of_its_own_are_initialised() -> None:
    attention = ours(1)
    initialize(attention, torch_generator("start"))
    assert 0 < attention.query.weight.abs().max() < (3 / (2 * DIM)) ** 0.5 + 1e-6
    for own, other in (
        (attention.query, attention.global_query),
        (attention.key_value, attention.global_key_value),
    ):
        assert torch.equal(own.weight, other.weight)
        assert own.weight is not other.weight


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(
        ValidationError, match=r"set attention\.num_global=0 or attention\.dilation=1"
    ):
        Longformer(dilation=2)
    for role, place in (
        ("decoder", "model.decoder.attention"),
        ("cross", "model.decoder.cross_attention"),
    ):
        with pytest.raises(SettingsError, match=f"{place}.*kind=full, fused, .* there"):
            build_attention(Longformer(), dim=6, num_heads=2, dropout_rate=0.0, role=role)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("length", "width"), [(7, 4), (16, 4), (13, 16), (97, 512), (17, 4), (131, 512)]
)
def test_packed_sentences_are_as_alone_in_rows_shorter_than_a_block(
    length: int, width: int
) -> None:
    layer = LongformerMultiHead(6, 2, LongformerAttention(width, 2)).double()
    x = torch.randn(2, length, 6, generator=torch_generator("short", length), dtype=torch.float64)
    numbers = (torch.arange(length) >= length // 3).long().expand(2, -1) + 1
    packed = layer(x, x, segments(numbers, numbers))
    for part in (slice(0, length // 3), slice(length // 3, length)):
        alone = x[:, part].clone()
        assert torch.allclose(packed[:, part], layer(alone, alone, Mask()), atol=1e-12)


@pytest.mark.parametrize("position", [None, "alibi"])
def test_a_decoder_has_it_without_global_tokens(position: str | None) -> None:
    """Every third of the tokens before: all at once is what it is step by step, and a later word
    changes nothing before it."""
    settings = Longformer(width=4, num_global=0, dilation=3)
    relation = None if position is None else AlibiRelation(2)
    layer = build_attention(
        settings, dim=6, num_heads=2, dropout_rate=0.0, role="decoder", relation=relation
    )
    x = torch.randn(2, 17, 6, generator=torch_generator("words"))
    whole = layer(x, x, causal())
    cache = layer.make_cache(max_length=17, num_rows=2, like=x)
    steps = torch.cat([layer.step(x[:, time : time + 1], cache) for time in range(17)], dim=1)
    torch.testing.assert_close(steps, whole)
    seen = layer.weights(x, x, causal())[0, 0, 12].nonzero()[:, 0].tolist()
    assert seen == [6, 9, 12]


def test_with_global_tokens_a_decoder_is_refused_with_both_ways_out() -> None:
    with pytest.raises(
        SettingsError,
        match=r"num_global=0, it can stand there\); use kind=full, fused, window, .* there",
    ):
        build_attention(Longformer(), dim=6, num_heads=2, dropout_rate=0.0, role="decoder")


def far_gradients(dtype: torch.dtype, *, upstream_of_padding: float) -> tuple[torch.Tensor, ...]:
    """Gradients of what only global queries use; values and what flows back have a mean, as they do
    in a trained model."""
    lengths = torch.tensor([[13, 8, 17, 10], [21, 9, 7, 11]])
    numbers = torch.stack(
        [torch.repeat_interleave(torch.tensor([1, 2, 3, 0]), row) for row in lengths]
    )
    near = [
        torch.randn(2, HEADS, 48, 16, generator=torch_generator("near", name)).to(dtype)
        for name in "qkv"
    ]
    far = [torch.randn(2, HEADS, 48, 16, generator=torch_generator("far", name)) for name in "qkv"]
    far = [
        part.add(3.0 * (name == "v")).to(dtype).requires_grad_()
        for part, name in zip(far, "qkv", strict=True)
    ]
    upstream = torch.randn(2, HEADS, 48, 16, generator=torch_generator("upstream")) + 1
    upstream = torch.where(numbers[:, None, :, None] == 0, upstream_of_padding, upstream)
    mask = segments(numbers, numbers).ignoring_blind()
    output = LongformerAttention(window=8).attend((*near,), (*far,), mask)  # type: ignore[arg-type]
    return torch.autograd.grad(output, far, upstream.to(dtype))


def test_rounding_does_not_push_the_keys_of_a_global_query_one_way() -> None:
    """A vector added to all keys changes nothing: in bfloat16 its gradient must not be more than
    the rounding of the keys' own."""
    keys = far_gradients(torch.bfloat16, upstream_of_padding=0.0)[1].float()
    one_rounding = 2**-9 * keys.square().sum(2).sqrt()
    assert keys.sum(2).abs().mean() < one_rounding.mean()


def test_queries_that_see_nothing_have_finite_gradients() -> None:
    with_slope, without = (
        far_gradients(torch.float32, upstream_of_padding=slope) for slope in (100.0, 0.0)
    )
    for found, expected in zip(with_slope, without, strict=True):
        torch.testing.assert_close(found, expected)


def test_queries_that_stand_elsewhere_are_refused_with_the_reason() -> None:
    x = torch.zeros(1, 1, 7, 3)
    with pytest.raises(
        MaskError,
        match=r"queries are 2 positions from their keys, .* use causal\(\) without an offset",
    ):
        LongformerAttention(4, 0, dilation=2)(x, x, x, causal(2))


def test_fetched_keys_and_global_queries_come_in_eights() -> None:
    """Tables of odd width are padded by the compiler on CUDA, and were learnt from less well there
    in bfloat16."""
    numbers = torch.arange(48).expand(2, -1) // 13 + 1
    plan = LongformerAttention(window=8, num_global=3).plan(
        segments(numbers, numbers), 48, 48, torch.device("cpu")
    )
    assert plan.wide is not None
    assert plan.layout.key.shape[-1] % 8 == plan.wide.target.shape[-1] % 8 == 0
