"""Step by step equals at once, through every rearrangement a search may ask for; the beam finds
what trying everything finds."""

from itertools import product

import pytest
import torch

from headwise.decoding.choices import decode
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.length_penalty import NoLength
from headwise.errors import UsageError
from headwise.models.recurrent.stepper import RecurrentStepper
from headwise.models.recurrent.translator import RecurrentTranslator
from headwise.models.steppers import make_stepper
from tests.models.recurrent.examples import ATTENTIONS, VOCAB, make
from tests.models.test_transformer_stepper import SOURCES
from tests.reference.sentences import BOS, EOS, padded_batch


def at_once(
    model: RecurrentTranslator, sources: list[list[int]], prefixes: list[list[int]]
) -> torch.Tensor:
    pairs = [([*source, EOS], prefix) for source, prefix in zip(sources, prefixes, strict=True)]
    with torch.no_grad():
        return padded_batch(pairs).logits(model)[:, -1].log_softmax(-1)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("width", [1, 3])
def test_steps_equal_at_once_through_reorders_and_dropped_sentences(
    attention: str, width: int, generator: torch.Generator
) -> None:
    model = make(generator, attention)
    stepper = make_stepper(model)
    alive = list(range(len(SOURCES)))
    prefixes: list[list[int]] = [[] for _ in range(len(SOURCES) * width)]
    state = stepper.start(SOURCES, width=width, max_length=7)
    for time in range(6):
        tokens = torch.randint(1, VOCAB, (len(prefixes),), generator=generator)
        prefixes = [
            [*prefix, token] for prefix, token in zip(prefixes, tokens.tolist(), strict=True)
        ]
        given, state = stepper.step(state, tokens)
        rows = [SOURCES[sentence] for sentence in alive for _ in range(width)]
        torch.testing.assert_close(given, at_once(model, rows, prefixes), atol=1e-5, rtol=1e-5)
        kept = [place for place in range(len(alive)) if not (time in (2, 4) and place in (0, 2))]
        choice = torch.randint(0, width, (len(kept), width), generator=generator)
        index = (torch.tensor(kept)[:, None] * width + choice).view(-1)
        state = stepper.reorder(state, index)
        prefixes, alive = (
            [prefixes[row] for row in index.tolist()],
            [alive[place] for place in kept],
        )
    assert len(alive) == 1


def test_attention_of_a_step_is_the_row_of_the_map(generator: torch.Generator) -> None:
    model = make(generator, "bahdanau")
    stepper = RecurrentStepper(model, attending=True)
    state = stepper.start(SOURCES, width=2, max_length=3)
    _, state = stepper.step(state, torch.ones(10, dtype=torch.long))
    _, state = stepper.step(state, torch.full((10,), 4))
    attention = stepper.attention(state)
    torch.testing.assert_close(attention.sum(-1), torch.ones(10))
    for row, source in enumerate(SOURCES):
        maps = model.attention_maps(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, 4]]))
        expected = maps["decoder.0.cross"][0, 0, 1]
        torch.testing.assert_close(
            attention[2 * row, : len(source) + 1], expected, atol=1e-5, rtol=1e-5
        )
        assert attention[2 * row, len(source) + 1 :].eq(0).all()


def test_coverage_without_attention_is_refused(generator: torch.Generator) -> None:
    with pytest.raises(
        UsageError, match="coverage_penalty needs attention, and the model has none"
    ):
        make_stepper(make(generator, "none"), attending=True)


@pytest.mark.parametrize("attention", ["none", "bahdanau", "luong"])
def test_a_beam_as_wide_as_the_tree_is_exhaustive(
    attention: str, generator: torch.Generator
) -> None:
    vocab, limit, source = 6, 3, [5, 3, 4, 5]
    model = make(generator, attention, vocab=vocab)
    every = {}
    for length in range(limit + 1):
        for tokens in product(range(3, vocab), repeat=length):
            whole = (*tokens, EOS) if length < limit else tokens
            batch = padded_batch([([*source, EOS], [BOS, *whole[:-1]])])
            with torch.no_grad():
                found = batch.logits(model)[0].log_softmax(-1)
            every[tokens] = sum(found[place, token].item() for place, token in enumerate(whole))
    best = sorted(every, key=lambda tokens: -every[tokens])[:7]
    settings = BeamSettings(
        size=40, num_best=7, max_length=limit, length_penalty=NoLength(), stop="proven"
    )
    hypotheses = decode(make_stepper(model), [source], settings)[0].hypotheses
    assert [hypothesis.tokens for hypothesis in hypotheses] == best
    assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx(
        [every[one] for one in best], rel=1e-4
    )
