"""Decoders that see several layers of the encoder: the mappings, the formula, the usual Transformer
as a special case, gradients, refusals."""

import pytest
import torch
from torch import Tensor

from headwise.attention.masks import everything
from headwise.attention.multi_head import MultiHeadAttention
from headwise.attention.viewed_attention import ViewedAttention
from headwise.errors import SettingsError
from headwise.models.choices import EncoderDecoderSettings, ParallelSettings, build_model
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.source_views import SourceViews, find_level
from headwise.settings import check_settings
from tests.reference.sentences import draw_pairs, padded_batch

VOCAB, DIM = 23, 12


def make(views: str, generator: torch.Generator, **changes: object) -> EncoderDecoder:
    data = {
        "dim": DIM,
        "encoder": {"layers": 3, "heads": 3},
        "decoder": {"layers": 2, "heads": 3, "views": views},
    }
    settings = check_settings(EncoderDecoderSettings, data | changes)
    return build_model(settings, source_size=VOCAB, target_size=VOCAB, generator=generator).eval()


def hidden(model: EncoderDecoder, generator: torch.Generator) -> Tensor:
    return padded_batch(draw_pairs([(5, 7), (3, 2)], VOCAB, generator)).hidden(model)


@pytest.mark.parametrize(
    ("views", "layers", "expected"),
    [
        ("same_level", (6, 6), [1, 2, 3, 4, 5, 6]),
        ("coarse_to_fine", (6, 6), [6, 5, 4, 3, 2, 1]),
        ("same_level", (6, 3), [2, 4, 6]),
        ("coarse_to_fine", (6, 3), [6, 4, 2]),
        ("same_level", (2, 5), [1, 1, 2, 2, 2]),
        ("same_level", (1, 1), [1]),
    ],
)
def test_the_levels_by_hand(views: str, layers: tuple[int, int], expected: list[int]) -> None:
    encoder, decoder = layers
    found = [
        find_level(views, layer, num_encoder=encoder, num_decoder=decoder)  # type: ignore[arg-type]
        for layer in range(1, decoder + 1)
    ]
    assert found == expected


def test_views_lie_side_by_side(generator: torch.Generator) -> None:
    states = [torch.randn(2, 5, DIM, generator=generator) for _ in range(3)]
    put = SourceViews("coarse_to_fine", num_encoder=3, num_decoder=3)
    found = put(states).split(DIM, dim=-1)
    for part, level in zip(found, (2, 2, 1, 0), strict=True):
        assert torch.equal(part, states[level])


def test_a_soft_view_is_a_mean_by_softmax(generator: torch.Generator) -> None:
    states = [torch.randn(2, 5, DIM, generator=generator) for _ in range(3)]
    put = SourceViews("soft", num_encoder=3, num_decoder=2)
    assert put.mixture is not None
    with torch.no_grad():
        put.mixture.copy_(torch.randn(2, 3, generator=generator))
    top, *found = put(states).split(DIM, dim=-1)
    assert torch.equal(top, states[-1])
    for row, part in zip(put.mixture.softmax(-1), found, strict=True):
        mean = sum(weight * state for weight, state in zip(row, states, strict=True))
        torch.testing.assert_close(part, mean)


@torch.no_grad()
def test_the_mean_of_two_calls(generator: torch.Generator) -> None:
    """The same weights, ordinary attention, once for each view; and the maps of both."""
    model = make("same_level", generator)
    layer = model.decoder[1].cross_attention
    assert isinstance(layer, ViewedAttention)
    plain = MultiHeadAttention(DIM, 3, layer.kernel)
    plain.load_state_dict(layer.state_dict())
    memory = torch.randn(2, 5, 3 * DIM, generator=generator)
    x = torch.randn(2, 4, DIM, generator=generator)
    views = memory[..., :DIM].contiguous(), memory[..., 2 * DIM :].contiguous()
    calls = [plain(x, view, everything()) for view in views]
    torch.testing.assert_close(layer(x, memory, everything()), (calls[0] + calls[1]) / 2)
    maps = torch.cat([plain.weights(x, view, everything()) for view in views], dim=1)
    torch.testing.assert_close(layer.weights(x, memory, everything()), maps)


@torch.no_grad()
def test_a_second_view_of_the_last_layer_changes_nothing(generator: torch.Generator) -> None:
    seed = generator.initial_seed()
    usual = make("top", torch.Generator().manual_seed(seed))
    viewed = make("same_level", torch.Generator().manual_seed(seed))
    assert viewed.views is not None
    viewed.load_state_dict(usual.state_dict())
    viewed.views.levels = (3, 3)
    found, expected = (
        hidden(model, torch.Generator().manual_seed(seed)) for model in (viewed, usual)
    )
    torch.testing.assert_close(found, expected)
    viewed.views.levels = (1, 3)
    other = hidden(viewed, torch.Generator().manual_seed(seed))
    assert not torch.allclose(other, expected)


def test_top_is_built_as_before(generator: torch.Generator) -> None:
    model = make("top", generator)
    assert model.views is None
    assert all(type(block.cross_attention) is MultiHeadAttention for block in model.decoder)


@pytest.mark.parametrize("views", ["same_level", "coarse_to_fine", "soft"])
def test_gradients_reach_the_first_layer_by_the_second_way(
    views: str, generator: torch.Generator
) -> None:
    model = make(views, generator)
    (source, target), *_ = draw_pairs([(5, 7)], VOCAB, generator)
    batch = padded_batch([(source, target)])
    last = model.encoder[-1].register_forward_hook(lambda *found: found[-1].detach())
    batch.hidden(model).square().sum().backward()
    last.remove()
    first = model.encoder[0].self_attention.query.weight.grad
    assert first is not None
    assert first.abs().sum() > 0
    if model.views is not None and model.views.mixture is not None:
        assert model.views.mixture.grad is not None
        assert model.views.mixture.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": {"layers": 0, "heads": 3}}, "needs layers of an encoder"),
        ({"draft_decoder": {"layers": 1}}, "draft_decoder reads the last layer"),
        (
            {
                "decoder": {
                    "layers": 2,
                    "heads": 3,
                    "views": "soft",
                    "cross_attention": {"kind": "linear"},
                }
            },
            "attends twice with the same weights",
        ),
    ],
)
def test_what_cannot_see_views_is_refused(
    changes: dict, message: str, generator: torch.Generator
) -> None:
    with pytest.raises(SettingsError, match=message):
        make("soft", generator, **changes)


def test_a_parallel_translator_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"model\.kind=parallel reads more from the encoder"):
        check_settings(ParallelSettings, {"kind": "parallel", "decoder": {"views": "soft"}})
