"""Freezing and slower layers: names, rates, and bits that stay."""

import pytest
import torch

from headwise.errors import SettingsError
from headwise.models.labeller import build_labeller
from headwise.models.sentence_encoder import TransformerEncoderSettings
from headwise.randomness import torch_generator
from headwise.training.choices import AdamWOptimizer
from headwise.training.freezing import freeze, rate_scales
from headwise.training.optimizers import build_optimizer, set_learning_rate


def _model() -> torch.nn.Module:
    return build_labeller(
        TransformerEncoderSettings(dim=8, layers=3, heads=2),
        vocabulary_size=7,
        num_classes=2,
        pooling="mean",
        generator=torch_generator("f"),
    )


def test_patterns_and_ranges() -> None:
    frozen = freeze(_model(), ["encoder.embedding.*", "layers 0-1"])
    assert all(
        name.startswith(("encoder.embedding.", "encoder.blocks.0.", "encoder.blocks.1."))
        for name in frozen
    )
    assert freeze(_model(), ["layers 2"])[0].startswith("encoder.blocks.2.")
    assert freeze(_model(), []) == []
    others = freeze(_model(), ["not output.*"])
    assert others
    assert {name for name, _ in _model().named_parameters() if name not in others} == {
        "output.weight",
        "output.bias",
    }


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["encodr.*"], "'encodr.*' matches no weight; write a pattern"),
        (["layers 3-5"], "'layers 3-5' matches no weight"),
        (["*"], "matches every weight, nothing is left to learn"),
    ],
)
def test_patterns_that_cannot_be_meant(patterns: list[str], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        freeze(_model(), patterns)
    assert message in str(caught.value)


def test_rates_fall_with_depth() -> None:
    scales = rate_scales(_model(), 0.5)
    assert scales["output.weight"] == scales["encoder.norm.gain"] == 1.0
    first, last = (name for name in scales if name.endswith("widen.weight") and ".1." not in name)
    assert (scales[last], scales[first]) == (0.5, 0.125)
    assert scales["encoder.embedding.table.weight"] == 0.5**4
    module = _model()
    optimizer = build_optimizer(AdamWOptimizer(weight_decay=0.1), module, layer_decay=0.5)
    set_learning_rate(optimizer, 0.8)
    rates = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"]}
    assert all(
        rates[id(p)] == pytest.approx(0.8 * scales[name]) for name, p in module.named_parameters()
    )
