"""Logits and gradients equal those of transformers' Marian and Pegasus with the same weights."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.reference.peers import PAD, Peer, copy_marian, make_peer, pair_weights
from tests.reference.sentences import Batch, draw_pairs, padded_batch

LENGTHS = ((5, 7), (11, 3), (1, 2), (13, 17))
VARIANTS: dict[str, dict] = {
    "marian": {"norm": "after"},
    "marian_gelu_untied": {"norm": "after", "activation": "gelu", "tied": "output"},
    "marian_wide": {
        "norm": "after",
        "dim": 64,
        "heads": 4,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "vocab": 211,
    },
    "marian_one_head": {
        "norm": "after",
        "dim": 10,
        "heads": 1,
        "encoder_layers": 3,
        "decoder_layers": 1,
    },
    "pegasus": {"norm": "before"},
    "pegasus_gelu_deep": {
        "norm": "before",
        "activation": "gelu",
        "encoder_layers": 5,
        "decoder_layers": 4,
    },
}


def peer_logits(peer: Peer, batch: Batch) -> Tensor:
    return peer(
        input_ids=batch.source,
        attention_mask=batch.source_segment,
        decoder_input_ids=batch.target,
        use_cache=False,
    ).logits


@pytest.mark.parametrize("attention", ["full", "fused"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_equal(variant: str, attention: str, generator: torch.Generator) -> None:
    peer = make_peer(variant, **VARIANTS[variant])
    model = copy_marian(peer, attention=attention)
    batch = padded_batch(draw_pairs(LENGTHS, peer.config.vocab_size, generator), extra=2)
    with torch.no_grad():
        theirs, ours = peer_logits(peer, batch), batch.logits(model)
    real = batch.target != PAD
    torch.testing.assert_close(ours[real], theirs[real], atol=1e-5, rtol=0)


@pytest.mark.parametrize("variant", ["marian", "marian_gelu_untied", "pegasus"])
def test_gradients_equal(variant: str, generator: torch.Generator) -> None:
    peer = make_peer(variant, **VARIANTS[variant])
    model = copy_marian(peer)
    batch = padded_batch(draw_pairs(LENGTHS, peer.config.vocab_size, generator))
    answers = batch.target.roll(-1, dims=1).masked_fill(batch.target == PAD, -100)
    for logits in (peer_logits(peer, batch), batch.logits(model)):
        F.cross_entropy(logits.flatten(0, 1), answers.flatten(), ignore_index=-100).backward()
    num_compared = 0
    for ours, theirs in pair_weights(model, peer):
        expected = torch.cat([parameter.grad for parameter in theirs])
        assert ours.grad is not None
        assert expected.abs().max() > 0
        torch.testing.assert_close(
            ours.grad, expected, atol=1e-4 * expected.abs().max().item(), rtol=1e-4
        )
        num_compared += ours.numel()
    own = {id(parameter) for parameter, _ in pair_weights(model, peer)}
    assert {id(parameter) for parameter in model.parameters()} - own == {id(model.output.bias)}
    assert num_compared > 10_000


def test_sines_and_cosines_equal_marians_table() -> None:
    from headwise.positions import sinusoidal_table

    peer = make_peer("table")
    table = peer.model.encoder.embed_positions.weight
    torch.testing.assert_close(
        sinusoidal_table(*table.shape, layout="halves"), table, atol=1e-7, rtol=0
    )
