"""Greedy and beam search against `generate` of transformers: token for token, score for score."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from headwise.decoding.choices import decode
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.randomness import torch_generator
from tests.decoding.conftest import phrases_of_tokens

transformers = pytest.importorskip("transformers")

VOCAB, MAX_NEW = 37, 13


class MarianStepper:
    """A Marian model without cache: every step recomputes the prefix. Its decoder starts with
    padding where ours has 1."""

    def __init__(self, model) -> None:
        self.model = model
        self.device = torch.device("cpu")

    def start(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int):
        ids, mask = pad_sources(sources)
        memory = self.model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        return memory.repeat_interleave(width, 0), mask.repeat_interleave(width, 0), None

    def step(self, state, tokens: Tensor):
        memory, mask, prefix = state
        start = torch.zeros_like(tokens)[:, None]
        prefix = start if prefix is None else torch.cat([prefix, tokens[:, None]], dim=1)
        logits = self.model(
            encoder_outputs=(memory,),
            attention_mask=mask,
            decoder_input_ids=prefix,
            use_cache=False,
        ).logits
        return logits[:, -1].log_softmax(-1), (memory, mask, prefix)

    def reorder(self, state, index: Tensor):
        return tuple(table[index] for table in state)


def pad_sources(sources: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    length = max(map(len, sources)) + 1
    ids = torch.tensor([[*source, 2, *[0] * (length - 1 - len(source))] for source in sources])
    return ids, (ids != 0).long()


@pytest.fixture(scope="module")
def model():
    generator = torch_generator(1, "marian")
    config = transformers.MarianConfig(
        vocab_size=VOCAB, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32,
        max_position_embeddings=64, pad_token_id=0, eos_token_id=2, decoder_start_token_id=0,
        forced_eos_token_id=None, bos_token_id=1,
    )  # fmt: skip
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        # Positions and cross-attention loud, the rest quiet: outputs then differ by source, place
        # and history.
        for name, parameter in model.named_parameters():
            loud = "embed_positions" in name or "encoder_attn." in name
            parameter.copy_(
                torch.randn(parameter.shape, generator=generator) * (1.0 if loud else 0.3)
            )
            if "layer_norm.weight" in name:
                parameter.fill_(1.0)
        model.final_logits_bias[0, 2] = 2.5
        model.final_logits_bias[0, :2] = -1e4  # our searches never emit padding or the beginning
    return model


@pytest.fixture(scope="module")
def random_sources() -> list[list[int]]:
    generator = torch_generator(2, "sources")
    lengths = torch.randint(1, 9, (211,), generator=generator).tolist()
    return [torch.randint(3, VOCAB, (length,), generator=generator).tolist() for length in lengths]


def generate(model, sources, **options) -> tuple[list[tuple[int, ...]], list[float]]:
    """Without cache, as the stepper above: else the two round differently and one near tie (2e-6)
    in 211 sentences flips."""
    ids, mask = pad_sources(sources)
    output = model.generate(
        input_ids=ids, attention_mask=mask, do_sample=False, use_cache=False,
        max_new_tokens=MAX_NEW, return_dict_in_generate=True, output_scores=True, **options,
    )  # fmt: skip
    rows = [row[1:].tolist() for row in output.sequences]
    rows = [tuple(row[: row.index(2)] if 2 in row else row) for row in rows]
    scores = output.sequences_scores.tolist() if "sequences_scores" in output else []
    return rows, scores


def strip_padding(tokens: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(token for token in tokens if token != 0)


@pytest.mark.parametrize("at_limit", ["cut", "end"])
def test_greedy(model, random_sources, at_limit):
    forced = 2 if at_limit == "end" else None
    expected, _ = generate(model, random_sources, num_beams=1, forced_eos_token_id=forced)
    found = decode(
        MarianStepper(model), random_sources, GreedySettings(max_length=MAX_NEW, at_limit=at_limit)
    )
    assert [result.best.tokens for result in found] == [strip_padding(row) for row in expected]
    lengths = {len(row) for row in expected}
    assert len(lengths) > 3, "the comparison is only worth something if lengths vary"


@pytest.mark.parametrize(
    ("size", "num_best", "stop", "alpha", "at_limit"),
    [
        (2, 1, "likely", 1.0, "cut"),
        (4, 4, "likely", 1.0, "cut"),
        (5, 3, "likely", 1.0, "end"),
        (5, 5, "filled", 1.0, "cut"),
        (4, 2, "proven", 0.6, "cut"),
        (3, 3, "proven", -0.5, "cut"),
        (4, 4, "likely", 0.0, "cut"),
    ],
)
def test_beam(model, random_sources, size, num_best, stop, alpha, at_limit):
    early = {"likely": False, "filled": True, "proven": "never"}[stop]
    expected, scores = generate(
        model, random_sources, num_beams=size, num_return_sequences=num_best, early_stopping=early,
        length_penalty=alpha, forced_eos_token_id=2 if at_limit == "end" else None,
    )  # fmt: skip
    settings = BeamSettings(
        size=size, num_best=num_best, stop=stop, max_length=MAX_NEW, at_limit=at_limit,
        length_penalty={"kind": "average", "alpha": alpha},
    )  # fmt: skip
    found = decode(MarianStepper(model), random_sources, settings)
    hypotheses = [hypothesis for result in found for hypothesis in result.hypotheses]
    assert [hypothesis.tokens for hypothesis in hypotheses] == [
        strip_padding(row) for row in expected
    ]
    assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx(
        scores, rel=1e-5, abs=1e-5
    )


def test_beam_with_constraints(model, random_sources):
    expected, _ = generate(
        model, random_sources, num_beams=4, no_repeat_ngram_size=2, min_new_tokens=3,
        bad_words_ids=[[7], [9, 11]], forced_eos_token_id=None,
    )  # fmt: skip
    settings = BeamSettings(
        size=4, max_length=MAX_NEW, no_repeat_ngrams=2, min_length=3, forbidden=("a", "b")
    )
    phrases = phrases_of_tokens(forbidden=((7,), (9, 11)), vocab=model.config.vocab_size)
    found = decode(MarianStepper(model), random_sources, settings, phrases=phrases)
    assert [result.best.tokens for result in found] == [strip_padding(row) for row in expected]
