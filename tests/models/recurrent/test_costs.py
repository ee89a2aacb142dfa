"""Costs of a recurrent translator: worked by hand, and torch's count of its equations."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from headwise.models.describe import describe
from headwise.tasks.shape_only_modules import make_contentless
from tests.models.recurrent.examples import ATTENTIONS, VOCAB, make
from tests.reference.sentences import draw_pairs, padded_batch

SCORES = ("dot", "additive", "concat", "general")


def test_a_model_worked_out_by_hand(generator: torch.Generator) -> None:
    # dim 14, two directions of 7, one layer, LSTM (4 gates), everything tied, Luong's general
    # score, input feeding.
    model = make(generator, layers=1)
    description = describe(model, source_length=5, target_length=3)
    parts = {part.name: part for part in description.parts}
    assert parts["embedding"].parameters == 17 * 14
    assert parts["recurrent_encoder"].parameters == 2 * 4 * (7 * 14 + 7 * 7 + 2 * 7)
    assert parts["recurrent_decoder"].parameters == 4 * (14 * 28 + 14 * 14 + 2 * 14)
    assert parts["source_attention"].parameters == 14 * 14 + 28 * 14 + 14
    assert parts["output"].parameters == 0
    assert parts["source_attention"].source_flops == 5 * (2 * 14 * 14)
    assert parts["source_attention"].target_flops == 3 * (2 * 28 * 14 + 5 * (2 * 14 + 2 * 14))
    assert description.memory.cache_per_target_token == 0
    assert description.memory.cache_per_source_token == 4 * (14 + 14)
    assert describe(make(generator, "none")).memory.cache_per_source_token == 0


@pytest.mark.parametrize(
    "attention", [*(name for name in ATTENTIONS if "predictive" not in name), *SCORES]
)
@pytest.mark.parametrize("cell", ["rnn", "gru"])
def test_parameters_and_operations_equal_torchs_count(
    cell: str, attention: str, generator: torch.Generator
) -> None:
    score = {"kind": "bahdanau", "score": {"kind": attention}}
    model = make(generator, score if attention in SCORES else attention, cell=cell)
    batch = padded_batch(draw_pairs([(6, 4)], VOCAB, generator))
    description = describe(model, source_length=7, target_length=5)
    assert description.parameters == sum(parameter.numel() for parameter in model.parameters())
    make_contentless(model)
    with FlopCounterMode(display=False) as counter:
        batch.logits(model)
    # torch does not count products of a table and a vector, which the vote of these scores is.
    votes = [weight.numel() for name, weight in model.named_parameters() if name.endswith("vote")]
    assert (
        counter.get_total_flops() + sum(2 * hidden * 7 * 5 for hidden in votes)
        == description.forward_flops
    )
