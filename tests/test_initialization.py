"""Initial weights: each parameter as the table says, with the variance of its formula, from the
generator alone."""

import math
import re

import pytest
import torch
from torch import nn

from headwise.attention.kernels.longformer import LongformerMultiHead
from headwise.initialization import (
    Rule,
    constant,
    initialize,
    normal_by_width,
    ones,
    scaled_identity,
    uniform_by_filter,
    uniform_by_inputs,
    xavier,
    zeros,
)
from headwise.models.choices import (
    DecoderOnlySettings,
    EncoderDecoderSettings,
    build_decoder_only,
    build_model,
)
from headwise.models.elmo import build_bidirectional
from headwise.models.labeller import build_labeller
from headwise.models.masked_language_model import build_masked_language_model
from headwise.models.neural_ngram import NeuralNgram, NeuralNgramSettings
from headwise.models.recurrent.choices import RecurrentTranslatorSettings
from headwise.models.recurrent.language_model import RecurrentLanguageModel, RecurrentSettings
from headwise.models.sentence_encoder import (
    ElmoSettings,
    RecurrentEncoderSettings,
    TransformerEncoderSettings,
    WindowEncoderSettings,
    build_sentence_encoder,
)
from headwise.randomness import torch_generator
from headwise.settings import check_settings

DIM, HIDDEN, VOCAB = 128, 256, 1009
FULL = {"layers": 1, "heads": 4, "attention": {"kind": "full"}}
VARIANTS = {
    "plain": {},
    "gated": {"feed_forward": {"kind": "gated", "hidden": HIDDEN}, "norm": {"kind": "rms"}},
    "scores": {
        "encoder": {"attention": {"kind": "full", "score": {"kind": "bilinear"}}},
        "decoder": {
            "attention": {"kind": "full", "score": {"kind": "gaussian"}},
            "cross_attention": {
                "kind": "full",
                "score": {"kind": "concat"},
                "window": {"kind": "local_p"},
            },
        },
    },
    "learned": {
        "position": {"kind": "learned", "max_length": 53},
        "embedding": {"tied": "none"},
        "output_bias": True,
    },
    "t5": {"position": {"kind": "t5"}},
    "relative": {"position": {"kind": "relative"}} | dict.fromkeys(("encoder", "decoder"), FULL),
    "transformer_xl": {"position": {"kind": "transformer_xl"}},
    "continuous": {"position": {"kind": "continuous"}},
    "reformer": {"encoder": {"layers": 1, "heads": 4, "attention": {"kind": "reformer"}}},
    "longformer": {
        "encoder": {"layers": 1, "heads": 4, "attention": {"kind": "longformer", "width": 8}}
    },
    "linformer": {
        "encoder": {"layers": 1, "heads": 4, "attention": {"kind": "linformer", "rank": 67}}
    },
}


def make(variant: str, key: str = "weights") -> nn.Module:
    stack = {"layers": 1, "heads": 4}
    data = {"dim": DIM, "feed_forward": {"kind": "relu", "hidden": HIDDEN}} | VARIANTS[variant]
    data |= {part: stack | data.get(part, {}) for part in ("encoder", "decoder")}
    settings = check_settings(EncoderDecoderSettings, data)
    return build_model(
        settings, source_size=VOCAB, target_size=VOCAB, generator=torch_generator(key)
    )


# How every weight begins, by the name it has in a model: written down a second time, so that
# neither a part nor a new place for it changes the numbers that a seed gives.
TABLE: tuple[tuple[str, Rule], ...] = (
    (r"(.*\.)?(endings|together)\.weight", zeros),
    (r"(.*\.)?(table|halves)\.weight", normal_by_width),
    (r"output\.weight", normal_by_width),
    (r".*\.((global_)?query|value)\.weight", xavier(1, 1 / math.sqrt(2))),
    (r".*\.(global_)?key_value\.weight", xavier(2, 1 / math.sqrt(2))),
    (r".*\.gate_widen\.weight", xavier(2)),
    (r".*\.relation\.dynamics\.narrow\.weight", zeros),
    (r"(?!.*\.dynamics\.narrow).*\.(output|widen|narrow)\.weight", xavier(1)),
    (r".*\.relation\.distance\.weight", xavier(1, 1 / math.sqrt(2))),
    (r".*\.relation\.distance_(keys|values)", normal_by_width),
    (r".*\.relation\.(start|bucket_bias|content_bias|distance_bias)", zeros),
    (r"(.*\.)?(query_map|key_map|joint_map|place_map|vote|place_hidden|place_vote)", xavier(1)),
    (r"(.*\.)?between", scaled_identity),
    (r"hidden\.weight", xavier(1)),
    (r".*\.weight_(ih|hh|hr)_l0", uniform_by_inputs),
    (r".*\.bias_(ih|hh)_l0", zeros),
    (r".*\.(key|value)_summary", normal_by_width),
    (r"(.*\.)?filters\.\d+\.weight", uniform_by_filter),
    (r"(.*\.)?(change|gate)\.weight", xavier(1)),
    (r"(.*\.)?gate\.bias", constant(-2.0)),
    (r"(.*\.)?layer_scores", zeros),
    (r"(.*\.)?gain", ones),
    (r"(?!.*gate\.bias)(.*\.)?(bias|shift|log_scale|log_width)", zeros),
)


def begin_by_table(module: nn.Module, generator: torch.Generator) -> None:
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            (rule,) = [rule for pattern, rule in TABLE if re.fullmatch(pattern, name)]
            rule(parameter, generator)
        for part in module.modules():
            if isinstance(part, LongformerMultiHead):
                part.global_query.load_state_dict(part.query.state_dict())
                part.global_key_value.load_state_dict(part.key_value.state_dict())


def others() -> list[nn.Module]:
    """What is not a Transformer for translation: every part with weights stands in some model
    here."""
    recurrent = {"dim": 12, "attention": {"score": {"kind": "location"}}, "output_bias": True}
    translator = check_settings(RecurrentTranslatorSettings, recurrent)
    elmo = ElmoSettings(dim=12, hidden=13, letter_dim=5, filters=(3, 4))
    encoder = TransformerEncoderSettings(dim=16, halves=True, letters=9, pairs=5)
    none = torch_generator("unused")
    return [
        build_model(translator, source_size=11, target_size=11, generator=none),
        build_decoder_only(DecoderOnlySettings(dim=16, heads=2, layers=1), size=7, generator=none),
        NeuralNgram(NeuralNgramSettings(dim=7, hidden=5), size=11),
        RecurrentLanguageModel(RecurrentSettings(dim=6, hidden=8), size=11),
        build_labeller(encoder, vocabulary_size=5, num_classes=3, pooling="mean", generator=none),
        build_sentence_encoder(RecurrentEncoderSettings(dim=8), vocabulary_size=5),
        build_sentence_encoder(WindowEncoderSettings(dim=8, hidden=9), vocabulary_size=5),
        build_masked_language_model(encoder, vocabulary_size=5, has_pairs=True, generator=none),
        build_bidirectional(elmo, vocabulary_size=5, generator=none),
    ]


@pytest.mark.parametrize("variant", VARIANTS)
def test_parts_begin_as_the_table_says(variant: str) -> None:
    model = make(variant)
    begun = {name: parameter.clone() for name, parameter in model.state_dict().items()}
    begin_by_table(model, torch_generator("weights"))
    for name, tensor in model.state_dict().items():
        assert tensor.equal(begun[name]), name


@pytest.mark.parametrize("number", range(9))
def test_parts_of_other_models_begin_as_the_table_says(number: int) -> None:
    model = others()[number]
    initialize(model, torch_generator("begin"))
    begun = {name: parameter.clone() for name, parameter in model.state_dict().items()}
    begin_by_table(model, torch_generator("begin"))
    for name, tensor in model.state_dict().items():
        assert tensor.equal(begun[name]), name


def test_every_row_of_the_table_is_used() -> None:
    models = [*map(make, VARIANTS), *others()]
    names = [name for model in models for name, _ in model.named_parameters()]
    for pattern, _ in TABLE:
        assert any(re.fullmatch(pattern, name) for name in names), pattern


def test_a_parameter_that_no_part_declares_is_our_bug() -> None:
    with pytest.raises(
        AssertionError, match=r"no part declares how the parameter '0\.weight' begins"
    ):
        initialize(nn.Sequential(nn.Linear(3, 2)), torch_generator("start"))


def expected_deviation(name: str) -> float:
    """Xavier's uniform bound a has deviation a/√3 = gain · √(2 / (fan_in + fan_out)), each fused
    part by itself."""
    if name.endswith("table.weight") or name == "output.weight":
        return DIM**-0.5
    if name.endswith("dynamics.narrow.weight"):
        return 0.0  # no motion
    if name.endswith("dynamics.widen.weight"):
        return math.sqrt(2 / (DIM + DIM + 1))  # one more input, the time
    if name.endswith("_summary"):
        return 67**-0.5  # the rank
    if name.endswith(("distance_keys", "distance_values")):
        return (DIM // 4) ** -0.5
    if name.endswith(
        (
            "query.weight",
            "global_query.weight",
            "self_attention.value.weight",
            "key_value.weight",
            "relation.distance.weight",
        )
    ):
        return math.sqrt(2 / (DIM + DIM)) / math.sqrt(2)
    if name.endswith("output.weight"):
        return math.sqrt(2 / (DIM + DIM))
    if name.endswith(("widen.weight", "narrow.weight")):
        return math.sqrt(2 / (DIM + HIDDEN))
    if name.endswith("joint_map"):
        return math.sqrt(2 / (2 * DIM // 4 + 64))
    if name.endswith("place_hidden"):
        return math.sqrt(2 / (2 * DIM // 4))
    if name.endswith("vote"):
        return math.sqrt(2 / (1 + (DIM // 4 if "place" in name else 64)))
    return 0.0


@pytest.mark.parametrize("variant", VARIANTS)
def test_variances_are_those_promised(variant: str) -> None:
    for name, parameter in make(variant).named_parameters():
        expected = expected_deviation(name)
        if name.endswith("between"):
            assert parameter.equal(torch.eye(parameter.shape[0]) / math.sqrt(parameter.shape[0]))
        elif expected:
            # Four standard errors, where a small table has more than five per cent.
            tolerance = max(0.05, 4 / math.sqrt(2 * parameter.numel()))
            assert parameter.std().item() == pytest.approx(expected, rel=tolerance), name
            assert abs(parameter.mean().item()) < 5 * expected / math.sqrt(parameter.numel()), name
        else:
            assert parameter.eq(1.0 if name.endswith("gain") else 0.0).all(), name


def test_weights_depend_on_the_generator_alone() -> None:
    torch.manual_seed(1)
    first = make("plain").state_dict()
    torch.manual_seed(2)
    again, other = make("plain").state_dict(), make("plain", "others").state_dict()
    assert all(first[name].equal(again[name]) for name in first)
    assert not first["output.weight"].equal(other["output.weight"])


def test_a_module_with_only_norms_is_filled_too() -> None:
    from headwise.blocks.normalization import LayerNorm

    norm = LayerNorm(3)
    nn.init.constant_(norm.gain, 7.0)
    initialize(norm, torch_generator("norm"))
    assert norm.gain.eq(1).all()
    assert norm.shift.eq(0).all()
