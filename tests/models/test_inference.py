"""The exchanged model computes what the plain one does, to the precision its form promises, and
leaves it alone."""

import pytest
import torch

from headwise.attention.masks import Mask
from headwise.blocks.inference.int8_linear import FbgemmLinear, IntegerLinear
from headwise.decoding.choices import BeamSettings, GreedySettings, decode
from headwise.errors import UsageError
from headwise.models import inference
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.inference import Precision, choose_form, exchange
from headwise.models.transformer_stepper import TransformerStepper
from tests.models.test_encoder_decoder import VARIANTS, make
from tests.reference.sentences import padded_batch

CPU = torch.device("cpu")
PAIRS = [([4, 5, 6, 7, 8, 2], [1, 9, 10]), ([9, 2], [1, 4, 5, 6, 7]), ([10, 11, 12, 2], [1])]
SOURCES = [[4, 5, 6, 7, 8], [9], [10, 11, 12]]


def exchanged(model: EncoderDecoder, precision: Precision) -> EncoderDecoder:
    try:
        return exchange(model, choose_form(precision, CPU))
    except UsageError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    ("precision", "tolerance"),
    [("auto", 1e-5), ("fp32", 1e-5), ("fp16", 2e-3), ("bf16", 0.05), ("int8", 0.1)],
)
def test_logits_are_those_of_the_plain_model(
    variant: str, precision: Precision, tolerance: float, generator: torch.Generator
) -> None:
    model = make(variant, generator).eval()
    batch = padded_batch(PAIRS)
    with torch.no_grad():
        plain, found = batch.logits(model), batch.logits(exchanged(model, precision))
    real = torch.tensor([[True] * len(target) + [False] * (5 - len(target)) for _, target in PAIRS])
    assert (plain - found)[real].norm() / plain[real].norm() < tolerance


@pytest.mark.parametrize(
    "settings", [GreedySettings(max_length=7), BeamSettings(size=3, max_length=7)]
)
def test_searches_in_packed_fp32_find_the_same_tokens(
    settings: GreedySettings | BeamSettings, generator: torch.Generator
) -> None:
    model = make("pre_norm", generator).eval()
    found = decode(TransformerStepper(exchanged(model, "fp32")), SOURCES, settings)
    plain = decode(TransformerStepper(model), SOURCES, settings)
    assert [one.best.tokens for one in found] == [one.best.tokens for one in plain]


def test_attention_maps_are_still_to_be_seen(generator: torch.Generator) -> None:
    model = make("pre_norm", generator).eval()
    other = exchanged(model, "fp32")
    x = torch.randn(2, 5, 16, generator=generator)
    for name, layer in other.attention_layers().items():
        with torch.no_grad():
            expected = model.attention_layers()[name].weights(x, x, Mask())
            torch.testing.assert_close(layer.weights(x, x, Mask()), expected, atol=1e-5, rtol=1e-5)


def test_the_trained_model_stays_as_it_was(generator: torch.Generator) -> None:
    model = make("pre_norm", generator).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    modules = [type(module) for module in model.modules()]
    other = exchanged(model, "int8")
    assert [type(module) for module in model.modules()] == modules
    assert model.training
    assert all(tensor.equal(before[name]) for name, tensor in model.state_dict().items())
    assert other.target_embedding.table.weight is model.target_embedding.table.weight
    assert other.output.weight is model.output.weight


def test_where_nothing_can_be_packed_the_plain_model_is_used_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inference, "_refusal", lambda make, tolerance: "no such operator")
    form = choose_form("auto", CPU)
    assert form.name == "plain"
    assert "slower: oneDNN cannot be used here (no such operator)" in str(form.remark)
    precisions: tuple[Precision, ...] = ("fp16", "bf16", "int8")
    for precision in precisions:
        with pytest.raises(
            UsageError, match=f"{precision} cannot be computed here.*use --precision fp32"
        ):
            choose_form(precision, CPU)


def test_int8_has_a_second_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        inference, "_refusal", lambda make, tolerance: "gone" if make is FbgemmLinear else None
    )
    form = choose_form("int8", CPU)
    assert form.make_linear is IntegerLinear
    assert "slower: fbgemm cannot be used here (gone)" in str(form.remark)


def test_on_an_accelerator_int8_is_refused_and_bf16_is_the_whole_model(
    generator: torch.Generator,
) -> None:
    refused: tuple[Precision, ...] = ("fp16", "int8")
    for precision in refused:
        with pytest.raises(UsageError, match=f"{precision} is computed on a CPU only"):
            choose_form(precision, torch.device("cuda"))
    assert choose_form("auto", torch.device("cuda")).name == "plain"
    model = make("pre_norm", generator)
    half = exchange(model, choose_form("bf16", torch.device("cuda")))
    assert {parameter.dtype for parameter in half.parameters()} == {torch.bfloat16}
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
