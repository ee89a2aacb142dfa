"""Step by step equals at once, through every rearrangement a search may ask for."""

import random

import pytest
import torch
from torch import Tensor

from headwise.errors import UsageError
from headwise.models import transformer_stepper as module
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.transformer_stepper import TransformerStepper
from tests.models.test_encoder_decoder import VARIANTS, VOCAB, make
from tests.reference.sentences import EOS, padded_batch

SOURCES = [[4, 5, 6, 7, 8], [9], [10, 11, 12], [13, 14, 4, 5], [6, 7]]


def at_once(model: EncoderDecoder, sources: list[list[int]], prefixes: list[list[int]]) -> Tensor:
    """log P(next token) after each prefix, computed afresh."""
    pairs = [([*source, EOS], prefix) for source, prefix in zip(sources, prefixes, strict=True)]
    with torch.no_grad():
        return padded_batch(pairs).logits(model)[:, -1].log_softmax(-1)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("width", [1, 3])
def test_steps_equal_at_once_through_reorders_and_dropped_sentences(
    variant: str, width: int, generator: torch.Generator
) -> None:
    model = make(variant, generator)
    decoder = TransformerStepper(model)
    alive = list(range(len(SOURCES)))
    prefixes: list[list[int]] = [[] for _ in range(len(SOURCES) * width)]
    state = decoder.start(SOURCES, width=width, max_length=7)
    for time in range(7):
        tokens = torch.randint(1, VOCAB, (len(prefixes),), generator=generator)
        prefixes = [
            [*prefix, token] for prefix, token in zip(prefixes, tokens.tolist(), strict=True)
        ]
        given, state = decoder.step(state, tokens)
        rows = [SOURCES[sentence] for sentence in alive for _ in range(width)]
        torch.testing.assert_close(given, at_once(model, rows, prefixes), atol=1e-5, rtol=1e-5)
        kept = [place for place in range(len(alive)) if not (time in (2, 4) and place in (0, 2))]
        choice = torch.randint(0, width, (len(kept), width), generator=generator)
        index = (torch.tensor(kept)[:, None] * width + choice).view(-1)
        state = decoder.reorder(state, index)
        prefixes, alive = (
            [prefixes[row] for row in index.tolist()],
            [alive[place] for place in kept],
        )
    assert len(alive) == 1


def test_a_sentence_alone_equals_the_sentence_in_a_batch(generator: torch.Generator) -> None:
    decoder = TransformerStepper(make("pre_norm", generator))
    together, _ = decoder.step(
        decoder.start(SOURCES, width=1, max_length=3), torch.ones(5, dtype=torch.long)
    )
    for number, source in enumerate(SOURCES):
        alone, _ = decoder.step(
            decoder.start([source], width=1, max_length=3), torch.ones(1, dtype=torch.long)
        )
        torch.testing.assert_close(alone[0], together[number], atol=1e-5, rtol=1e-5)


def test_an_empty_source_is_only_its_end(generator: torch.Generator) -> None:
    decoder = TransformerStepper(make("pre_norm", generator))
    log_probabilities, _ = decoder.step(
        decoder.start([[], [4]], width=1, max_length=3), torch.tensor([1, 1])
    )
    assert log_probabilities.exp().sum(-1).allclose(torch.ones(2))


def test_log_probabilities_are_the_searchs_to_overwrite(generator: torch.Generator) -> None:
    decoder = TransformerStepper(make("pre_norm", generator))
    log_probabilities, _ = decoder.step(
        decoder.start([[4]], width=1, max_length=3), torch.tensor([1])
    )
    log_probabilities[:, 0] = -torch.inf
    assert log_probabilities.dtype == torch.float32
    assert not log_probabilities.requires_grad


def test_attention_is_the_last_layers_mean_over_its_heads(generator: torch.Generator) -> None:
    from headwise.attention.taps import tap_attention

    model = make("pre_norm", generator)
    decoder = TransformerStepper(model, attending=True)
    state = decoder.start(SOURCES, width=2, max_length=3)
    _, state = decoder.step(state, torch.ones(10, dtype=torch.long))
    _, state = decoder.step(state, torch.full((10,), 4))
    attention = decoder.attention(state)
    assert attention.shape == (10, 6)  # the longest source and its end
    torch.testing.assert_close(attention.sum(-1), torch.ones(10))
    with torch.no_grad(), tap_attention({"last": model.decoder[-1].cross_attention}) as maps:
        padded_batch([([*source, EOS], [1, 4]) for source in SOURCES]).hidden(model)
    torch.testing.assert_close(attention[::2], maps["last"].mean(1)[:, 1], atol=1e-5, rtol=1e-5)
    for row, source in enumerate(SOURCES):
        assert attention[2 * row, len(source) + 1 :].eq(0).all()


def test_more_steps_than_were_asked_for_are_refused(generator: torch.Generator) -> None:
    decoder = TransformerStepper(make("pre_norm", generator))
    state = decoder.start([[4]], width=1, max_length=2)
    for _ in range(3):
        _, state = decoder.step(state, torch.tensor([5]))
    with pytest.raises(UsageError, match="the cache has room for 3 positions and 4 are needed"):
        decoder.step(state, torch.tensor([5]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_sources_of_like_length_are_encoded_together_and_come_out_the_same(
    variant: str, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROUP_ROWS", 2)
    decoder = TransformerStepper(make(variant, generator))
    together, _ = decoder.step(
        decoder.start(SOURCES, width=1, max_length=3), torch.ones(5, dtype=torch.long)
    )
    torch.testing.assert_close(
        together, at_once(decoder.model, SOURCES, [[1]] * 5), atol=1e-5, rtol=1e-5
    )


def test_groups_hold_every_source_once_and_fill_little() -> None:
    lengths = [random.Random(number).randint(1, 97) for number in range(101)]
    groups = module.group_lengths(lengths)
    assert sorted(number for group in groups for number in group) == list(range(101))
    assert len(groups) > 1
    assert all(len(group) >= module.GROUP_ROWS for group in groups)
    filled = sum(len(group) * max(lengths[number] for number in group) for group in groups)
    assert filled < 0.7 * len(lengths) * max(lengths)
    assert len(module.group_lengths([7] * 101)) == 1
    assert len(module.group_lengths(lengths[: 2 * module.GROUP_ROWS - 1])) == 1
