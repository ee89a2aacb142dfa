"""Scoring k tokens at once equals k steps, whatever each row accepted before."""

import pytest
import torch

from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.transformer_stepper import TransformerStepper
from headwise.models.verifying_decoder import VerifyingDecoder
from headwise.randomness import torch_generator
from tests.models.test_encoder_decoder import VARIANTS, VOCAB, make
from tests.models.test_transformer_stepper import SOURCES, at_once

MAX_LENGTH, BLOCK = 13, 4
UNSUPPORTED = {
    "location_local_m",
    "entmax_local_p",
    "relative",
    "relative_keys",
    "transformer_xl",
    "continuous",
}


def verifier_of(model: EncoderDecoder, sources: list[list[int]]) -> VerifyingDecoder:
    return TransformerStepper(model).make_verifier(sources, max_length=MAX_LENGTH, block=BLOCK)


@pytest.mark.parametrize("variant", VARIANTS)
def test_models_declare_whether_they_verify(variant: str, generator: torch.Generator) -> None:
    stepper = TransformerStepper(make(variant, generator))
    assert stepper.verifies_drafts == (variant not in UNSUPPORTED)
    assert stepper.num_draft_heads == 0


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name not in UNSUPPORTED])
def test_a_block_equals_single_steps_after_any_acceptance(
    variant: str, generator: torch.Generator
) -> None:
    model = make(variant, generator)
    verifier = verifier_of(model, SOURCES)
    alive, kept = list(range(len(SOURCES))), [list[int]() for _ in SOURCES]
    for number, width in enumerate((1, 3, 4, 2)):
        fed = torch.randint(1, VOCAB, (len(alive), width), generator=generator)
        scores = verifier.score(fed)
        for place, row in enumerate(alive):
            for step in range(width):
                prefix = [*kept[row], *fed[place, : step + 1].tolist()]
                expected = at_once(model, [SOURCES[row]], [prefix])[0]
                torch.testing.assert_close(scores[place, step], expected, atol=1e-5, rtol=1e-5)
        # Every row accepts its own number of tokens, one of them none.
        counts = [(row + number) % (width + 1) for row in alive]
        verifier.accept(counts)
        for row, tokens, count in zip(alive, fed.tolist(), counts, strict=True):
            kept[row] += tokens[:count]
        if number == 1:
            verifier.keep([0, 2, 3])
            alive = [alive[place] for place in (0, 2, 3)]


def test_the_last_position_may_be_asked_with_a_whole_block(generator: torch.Generator) -> None:
    """Columns past the last position are fed where another row has a longer draft."""
    model = make("learned_gelu", generator)  # it has 31 positions
    stepper = TransformerStepper(model)
    verifier = stepper.make_verifier([[4, 5], [6]], max_length=31, block=BLOCK)
    tokens = torch.randint(4, VOCAB, (2, 28), generator=generator)
    for begin in range(0, 28, BLOCK):
        verifier.score(tokens[:, begin : begin + BLOCK])
        verifier.accept([4, 4])
    last = torch.randint(4, VOCAB, (2, BLOCK), generator=generator)
    scores = verifier.score(last)
    for step in range(3):
        prefixes = torch.cat([tokens, last[:, : step + 1]], dim=1).tolist()
        expected = at_once(model, [[4, 5], [6]], prefixes)
        torch.testing.assert_close(scores[:, step], expected, atol=1e-5, rtol=1e-5)


def test_columns_never_written_hold_no_nan() -> None:
    model = make("pre_norm", torch_generator("nan"))
    verifier = verifier_of(model, [[4], [5, 6]])
    verifier.score(torch.ones((2, 1), dtype=torch.long))
    verifier.accept([1, 1])
    verifier.score(torch.full((2, 4), 7))
    verifier.accept([4, 0])
    assert verifier.score(torch.full((2, 2), 8)).isfinite().all()
