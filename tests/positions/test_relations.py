"""What every kind that speaks to attention owes: steps equal the whole, packed sentences stay
themselves, any length is read."""

import pytest
import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from headwise.attention.cache import KeyValueCache
from headwise.attention.choices import Full, Fused, build_attention
from headwise.attention.masks import causal, everything, segments
from headwise.attention.multi_head import MultiHeadAttention, Relation
from headwise.errors import UsageError
from headwise.positions.choices import (
    PositionSettings,
    build_positions,
    build_relations,
    check_relation,
)
from headwise.randomness import torch_generator

DIM, HEADS, ROWS, TIME = 12, 3, 2, 11
KINDS: dict[str, dict] = {
    "rotary": {},
    "rotary interleaved": {"pairing": "interleaved", "base": 100.0},
    "alibi": {},
    "t5": {"num_buckets": 8, "max_distance": 7},
    "relative": {"limit": 3},
    "relative keys": {"limit": 3, "values": False},
    "transformer_xl": {},
    "continuous": {"delta": 0.1, "stride": 4},
}
BY_DISTANCE = sorted(KINDS.keys() - {"continuous"})


def relations(name: str, *, num_layers: int = 1, is_causal: bool = True) -> list[Relation]:
    settings = TypeAdapter(PositionSettings).validate_python(
        {"kind": name.split()[0]} | KINDS[name]
    )
    found = build_relations(
        settings, num_layers=num_layers, dim=DIM, num_heads=HEADS, is_causal=is_causal
    )
    return [relation for relation in found if relation is not None]


def attention(name: str, *, is_causal: bool = True) -> MultiHeadAttention:
    """In double precision, every weight drawn, zeros too."""
    (relation,) = relations(name, is_causal=is_causal)
    built = build_attention(
        Full(),
        dim=DIM,
        num_heads=HEADS,
        dropout_rate=0.0,
        role="decoder" if is_causal else "encoder",
        relation=relation,
    ).double()
    generator = torch_generator("relations", name)
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.normal_(0, 0.5, generator=generator)
    return built


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch_generator("relation inputs"), dtype=torch.float64)


@pytest.mark.parametrize("name", KINDS)
def test_steps_equal_the_whole(name: str) -> None:
    layer, x = attention(name), draw(ROWS, TIME, DIM)
    with torch.no_grad():
        whole = layer(x, x, causal())
        cache = layer.make_cache(max_length=TIME, num_rows=ROWS, like=x)
        assert isinstance(cache, KeyValueCache)
        steps = [layer.step(x[:, time : time + 1], cache) for time in range(TIME)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_packed_sentences_are_as_if_alone(name: str, is_causal: bool) -> None:
    layer, x = attention(name, is_causal=is_causal), draw(1, TIME, DIM)
    order = causal() if is_causal else everything()
    segment = torch.tensor([[1] * 4 + [2] * 7])
    position = torch.cat([torch.arange(4), torch.arange(7)])[None]
    packed = layer(x, x, order & segments(segment, segment), position=position)
    for part in (x[:, :4], x[:, 4:]):
        alone = layer(part, part, order)
        place = slice(0, 4) if part.shape[1] == 4 else slice(4, None)
        torch.testing.assert_close(packed[:, place], alone)


@pytest.mark.parametrize("name", KINDS)
def test_the_order_of_tokens_matters(name: str) -> None:
    layer, x = attention(name, is_causal=False), draw(1, TIME, DIM)
    straight = layer(x, x, everything())
    backwards = x.flip(1)
    turned = layer(backwards, backwards, everything()).flip(1)
    # A distance without a sign cannot tell left from right.
    assert torch.allclose(turned, straight) == (name == "alibi")
    order = torch.tensor([1, 0, 3, 2, 5, 4, 8, 10, 6, 7, 9])
    moved = x[:, order]
    assert not torch.allclose(layer(moved, moved, everything()), straight[:, order], atol=1e-3)


@pytest.mark.parametrize("name", BY_DISTANCE)
def test_only_distances_count(name: str) -> None:
    layer, x = attention(name), draw(1, TIME, DIM)
    shifted = layer(x, x, causal(), position=torch.arange(TIME)[None] + 17)
    torch.testing.assert_close(shifted, layer(x, x, causal()), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_far_longer_than_anything_said(name: str) -> None:
    layer, x = attention(name), draw(1, 211, DIM)
    output = layer(x, x, causal())
    assert output.isfinite().all()
    short = x[:, :TIME]
    torch.testing.assert_close(output[:, :TIME], layer(short, short, causal()))


@pytest.mark.parametrize("name", KINDS)
def test_the_fused_kernel_agrees_or_refuses(name: str) -> None:
    (relation,) = relations(name)
    if name == "relative":
        with pytest.raises(
            UsageError,
            match=r"relative adds to the values.*attention.kind=fused.*position.values=false",
        ):
            check_relation(Fused(), relation)
        return
    fused = build_attention(
        Fused(), dim=DIM, num_heads=HEADS, dropout_rate=0.0, role="decoder", relation=relation
    )
    full, x = attention(name), draw(ROWS, TIME, DIM)
    fused.double().load_state_dict(full.state_dict())
    torch.testing.assert_close(fused(x, x, causal()), full(x, x, causal()))


@pytest.mark.parametrize("name", KINDS)
def test_a_stack_shares_what_it_should(name: str) -> None:
    found = relations(name, num_layers=3)
    assert len(found) == 3
    if name == "t5":
        assert found[0] is found[2]
    if name in ("relative", "transformer_xl", "continuous"):
        assert len({id(relation) for relation in found}) == 3
    if name == "continuous":
        assert all(isinstance(relation, nn.Module) for relation in found)
        assert len({id(relation.dynamics) for relation in found}) == 1  # type: ignore[attr-defined]


def test_nothing_is_added_to_embeddings_except_by_those_that_say_so() -> None:
    for name in KINDS:
        settings = TypeAdapter(PositionSettings).validate_python(
            {"kind": name.split()[0]} | KINDS[name]
        )
        assert (build_positions(settings, dim=DIM) is not None) == (name == "continuous")
