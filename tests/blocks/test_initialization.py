"""Initial weights: each parameter by exactly one rule, with the variance the formula promises, from the generator alone."""

import math
import re

import pytest
import torch
from torch import nn

from headwise.blocks.initialization import TABLE, initialize, rule_for
from headwise.blocks.recurrent_cells import RecurrentStack
from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.models.elmo import ElmoEncoder
from headwise.models.neural_ngram import NeuralNgram, NeuralNgramSettings
from headwise.models.sentence_encoder import (
    ElmoRung,
    RecurrentRung,
    WordRung,
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


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_parameter_fits_exactly_one_rule(variant: str) -> None:
    for name, _ in make(variant).named_parameters():
        assert sum(re.fullmatch(pattern, name) is not None for pattern, _ in TABLE) == 1, name


def test_what_reads_a_sentence_fits_exactly_one_rule() -> None:
    recurrent = build_sentence_encoder(RecurrentRung(), vocabulary_size=5)
    for name, _ in [*ElmoEncoder(ElmoRung()).named_parameters(), *recurrent.named_parameters()]:
        assert sum(re.fullmatch(pattern, name) is not None for pattern, _ in TABLE) == 1, name


def test_every_rule_is_used() -> None:
    models = [
        *map(make, VARIANTS),
        RecurrentStack("gru", 7, [5]),
        NeuralNgram(NeuralNgramSettings(), size=7),
        build_sentence_encoder(WordRung(letters=7, pairs=5), vocabulary_size=5),
        ElmoEncoder(ElmoRung()),
    ]
    names = [name for model in models for name, _ in model.named_parameters()]
    for pattern, _ in TABLE:
        assert any(re.fullmatch(pattern, name) for name in names), pattern


def test_a_parameter_without_a_rule_is_our_bug() -> None:
    with pytest.raises(
        AssertionError, match=r"no initialisation rule for the parameter 'stranger\.thing'"
    ):
        rule_for("stranger.thing")


def expected_deviation(name: str) -> float:
    """Xavier's uniform bound a has deviation a/√3 = gain · √(2 / (fan_in + fan_out)), each fused part by itself."""
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
