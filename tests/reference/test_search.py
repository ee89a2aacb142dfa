"""Translations equal `generate` of transformers with the same weights: our model, our caches, our
search, token for token."""

from functools import cache

import pytest
import torch

from headwise.decoding.choices import decode
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.transformer_stepper import TransformerStepper
from headwise.randomness import torch_generator
from tests.reference.peers import EOS, Peer, copy_marian, make_peer
from tests.reference.sentences import pad

VOCAB, MAX_NEW, NUM_SENTENCES = 41, 13, 200


@cache
def models(norm: str) -> tuple[Peer, EncoderDecoder]:
    peer = make_peer(
        "search", norm=norm, vocab=VOCAB, dim=16, heads=2, encoder_layers=1, decoder_layers=2
    )
    with torch.no_grad():
        # Loud cross-attention: what is written then depends on the source and the place.
        for layer in peer.model.decoder.layers:
            for projection in (
                layer.encoder_attn.q_proj,
                layer.encoder_attn.v_proj,
                layer.encoder_attn.out_proj,
            ):
                projection.weight.mul_(5.0)
        peer.final_logits_bias.zero_()
        peer.final_logits_bias[0, EOS] = 1.0
        peer.final_logits_bias[
            0, :EOS
        ] = -1e4  # our searches never write padding or the beginning of a sentence
    return peer, copy_marian(peer)


@cache
def sources() -> list[list[int]]:
    generator = torch_generator("search sources")
    lengths = torch.randint(1, 12, (NUM_SENTENCES,), generator=generator).tolist()
    return [torch.randint(4, VOCAB, (length,), generator=generator).tolist() for length in lengths]


def generate(peer: Peer, num_beams: int, **options) -> list[tuple[int, ...]]:
    ids = pad([[*source, EOS] for source in sources()])
    rows = peer.generate(
        input_ids=ids,
        attention_mask=(ids != 0).long(),
        num_beams=num_beams,
        do_sample=False,
        max_new_tokens=MAX_NEW,
        **options,
    )[:, 1:].tolist()
    return [
        tuple(token for token in (row[: row.index(EOS)] if EOS in row else row) if token != 0)
        for row in rows
    ]


@pytest.mark.parametrize("norm", ["after", "before"])
def test_greedy_equals_generate(norm: str) -> None:
    peer, model = models(norm)
    expected = generate(peer, 1)
    found = decode(TransformerStepper(model), sources(), GreedySettings(max_length=MAX_NEW))
    assert [result.best.tokens for result in found] == expected
    assert len(set(expected)) > NUM_SENTENCES // 4, (
        "outputs must differ for the comparison to be worth something"
    )
    assert len({len(row) for row in expected}) > 4


@pytest.mark.parametrize("norm", ["after", "before"])
def test_beam_equals_generate(norm: str) -> None:
    peer, model = models(norm)
    expected = generate(peer, 4, length_penalty=1.0)
    found = decode(TransformerStepper(model), sources(), BeamSettings(size=4, max_length=MAX_NEW))
    assert [result.best.tokens for result in found] == expected
    assert len(set(expected)) > NUM_SENTENCES // 4
