"""Recipes of models: what is refused, and what is built when embeddings are shared in the three
ways."""

import pytest
import torch

from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention
from headwise.blocks.normalization import LayerNorm, RMSNorm
from headwise.errors import SettingsError, UsageError
from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.settings import check_settings

SMALL = {"dim": 12, "encoder": {"layers": 2, "heads": 3}, "decoder": {"layers": 1, "heads": 2}}


def make(
    generator: torch.Generator | None, source_size: int = 17, target_size: int = 17, **changes
) -> EncoderDecoder:
    settings = check_settings(EncoderDecoderSettings, SMALL | changes)
    return build_model(
        settings, source_size=source_size, target_size=target_size, generator=generator
    )


@pytest.mark.parametrize(
    ("stack", "heads", "message"),
    [
        ("encoder", 5, r"encoder\.heads=5 does not divide dim=12; choose a divisor such as 4"),
        ("decoder", 7, r"decoder\.heads=7 does not divide dim=12; choose a divisor such as 6"),
    ],
)
def test_heads_must_divide_the_width(stack: str, heads: int, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        check_settings(EncoderDecoderSettings, SMALL | {stack: {"layers": 1, "heads": heads}})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": 7}, "dim: must be a multiple of 2"),
        (
            {"norm": {"kind": "magic"}},
            "norm: no kind 'magic'; choose one of 'layer', 'rms', 'power', 'batch'",
        ),
        ({"feed_foward": {}}, "feed_foward: unknown key; did you mean 'feed_forward'?"),
        ({"encoder": {"layers": -1}}, "encoder.layers: must be at least 0"),
    ],
)
def test_other_mistakes_are_named(changes: dict, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check_settings(EncoderDecoderSettings, SMALL | changes)
    assert message in str(caught.value)


def test_all_tied_is_one_matrix(generator: torch.Generator) -> None:
    model = make(generator)
    assert (
        model.source_embedding.table.weight
        is model.target_embedding.table.weight
        is model.output.weight
    )


def test_output_tied_shares_target_and_output(generator: torch.Generator) -> None:
    model = make(generator, source_size=13, embedding={"tied": "output"})
    assert model.target_embedding.table.weight is model.output.weight
    assert model.source_embedding.table.weight.shape == (13, 12)


def test_none_tied_shares_nothing(generator: torch.Generator) -> None:
    model = make(generator, source_size=13, embedding={"tied": "none"})
    weights = {
        id(part.weight)
        for part in (model.source_embedding.table, model.target_embedding.table, model.output)
    }
    assert len(weights) == 3


def test_one_matrix_needs_one_vocabulary(generator: torch.Generator) -> None:
    with pytest.raises(
        UsageError, match="vocabularies of 13 and 17 tokens cannot share one embedding"
    ):
        make(generator, source_size=13)


def test_the_recipe_reaches_every_part(generator: torch.Generator) -> None:
    model = make(
        generator,
        norm={"kind": "rms", "place": "after", "epsilon": 0.25},
        dropout={"residual": 0.1, "embedding": 0.2, "attention": 0.3, "hidden": 0.4},
        decoder={"layers": 1, "heads": 2, "attention": {"kind": "full"}},
        embedding={"scaled": False},
        output_bias=True,
    )
    block = model.decoder[0]
    assert len(model.encoder) == 2
    assert model.encoder[0].self_attention.num_heads == 3
    assert block.self_attention.num_heads == block.cross_attention.num_heads == 2
    assert block.self_attention.kernel == FullAttention(0.3)
    assert block.cross_attention.kernel == FusedAttention(0.3)
    assert isinstance(block.cross_residual.norm, RMSNorm)
    assert block.cross_residual.norm.epsilon == 0.25
    assert block.cross_residual.place == "after"
    assert block.cross_residual.dropout_rate == 0.1
    assert block.feed_forward.dropout_rate == 0.4
    assert model.target_embedding.dropout_rate == 0.2
    assert model.target_embedding.scale == 1.0
    assert isinstance(model.encoder_norm, torch.nn.Identity)
    assert model.output.bias is not None
    assert isinstance(make(generator).decoder_norm, LayerNorm)


def test_without_a_generator_a_model_is_only_built() -> None:
    before = torch.random.get_rng_state()
    assert make(None).output.weight.shape == (17, 12)
    assert torch.random.get_rng_state().equal(before), (
        "numbers were drawn for weights that will be replaced"
    )
