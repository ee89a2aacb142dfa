"""Rotations: what Llama and GPT-J compute, lengths kept, products by distance."""

import pytest
import torch
from pydantic import TypeAdapter
from transformers import LlamaConfig
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as turn_like_gptj
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from headwise.errors import UsageError
from headwise.positions.choices import PositionSettings, build_relations
from headwise.positions.rotary import rotate

ROWS, HEADS, TIME, HEAD_DIM = 2, 3, 7, 10


def draw(generator: torch.Generator) -> torch.Tensor:
    return torch.randn(ROWS, HEADS, TIME, HEAD_DIM, generator=generator)


def test_halves_are_llamas(generator: torch.Generator) -> None:
    q, k = draw(generator), draw(generator)
    position = torch.randint(0, 97, (ROWS, TIME), generator=generator)
    config = LlamaConfig(
        hidden_size=HEADS * HEAD_DIM, num_attention_heads=HEADS, num_hidden_layers=1
    )
    cos, sin = LlamaRotaryEmbedding(config)(q, position)
    for ours, theirs in zip(
        (rotate(x, position) for x in (q, k)), apply_rotary_pos_emb(q, k, cos, sin), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_neighbours_are_gptjs(generator: torch.Generator) -> None:
    x = draw(generator)
    position = torch.randint(0, 97, (ROWS, TIME), generator=generator)
    sin, cos = create_sinusoidal_positions(97, HEAD_DIM)[position].chunk(2, dim=-1)
    theirs = turn_like_gptj(x.transpose(1, 2), sin, cos).transpose(1, 2)
    torch.testing.assert_close(
        rotate(x, position, pairing="interleaved"), theirs, atol=1e-5, rtol=1e-5
    )


def test_the_two_pairings_differ_by_a_permutation(generator: torch.Generator) -> None:
    x, position = draw(generator), torch.arange(TIME).expand(ROWS, TIME)
    order = torch.arange(HEAD_DIM).view(2, -1).T.flatten()  # neighbours become halves
    halves = rotate(x, position)[..., order]
    torch.testing.assert_close(halves, rotate(x[..., order], position, pairing="interleaved"))


@pytest.mark.parametrize("pairing", ["halves", "interleaved"])
def test_lengths_stay_and_products_know_the_distance_alone(
    pairing: str, generator: torch.Generator
) -> None:
    q, k = (
        torch.randn(1, 1, 1, HEAD_DIM, generator=generator).expand(1, 1, TIME, -1) for _ in range(2)
    )
    position = torch.arange(TIME)[None] * 5
    turned_q, turned_k = (rotate(x, position, pairing=pairing) for x in (q, k))
    torch.testing.assert_close(turned_q.norm(dim=-1), q.norm(dim=-1))
    products = (turned_q @ turned_k.transpose(-1, -2))[0, 0]
    torch.testing.assert_close(products[1:, 1:], products[:-1, :-1], atol=1e-5, rtol=1e-5)
    assert (products[0, 1:] - products[0, 0]).abs().min() > 1e-3


def test_an_odd_head_has_no_pairs() -> None:
    settings = TypeAdapter(PositionSettings).validate_python({"kind": "rotary"})
    with pytest.raises(
        UsageError, match="rotary turns pairs of dimensions, but 2 heads of dim=10 have 5 each"
    ):
        build_relations(settings, num_layers=1, dim=10, num_heads=2, is_causal=True)
