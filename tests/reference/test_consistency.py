"""One model, several ways to run it, one answer: packed = padded = one by one, and step by step =
at once."""

import pytest
import torch

from headwise.models.transformer_stepper import TransformerStepper
from tests.reference.peers import copy_marian, make_peer
from tests.reference.sentences import draw_pairs, packed_row, padded_batch

LENGTHS = ((5, 7), (11, 3), (1, 2), (13, 17), (2, 5))
NORMS = ("after", "before")


@pytest.mark.parametrize("attention", ["full", "fused"])
@pytest.mark.parametrize("norm", NORMS)
def test_packed_rows_equal_one_by_one(
    norm: str, attention: str, generator: torch.Generator
) -> None:
    model = copy_marian(make_peer("packed", norm=norm), attention=attention)
    pairs = draw_pairs(LENGTHS, 53, generator)
    with torch.no_grad():
        packed = packed_row(pairs, extra=3).hidden(model)[0]
        start = 0
        for pair in pairs:
            alone = padded_batch([pair]).hidden(model)[0]
            torch.testing.assert_close(
                packed[start : start + len(pair[1])], alone, atol=1e-5, rtol=1e-5
            )
            start += len(pair[1])
        assert packed[start:].shape == (3, 24)
        assert packed.isfinite().all()


def test_gradients_of_a_packed_row_equal_the_sum_of_one_by_one(generator: torch.Generator) -> None:
    model = copy_marian(make_peer("packed gradients", norm="before"))
    pairs = draw_pairs(LENGTHS, 53, generator)
    batch = packed_row(pairs, extra=3)
    batch.hidden(model)[batch.target_segment > 0].square().sum().backward()
    together = {
        name: parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    model.zero_grad()
    for pair in pairs:
        padded_batch([pair]).hidden(model).square().sum().backward()
    assert len(together) > 50
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            scale = parameter.grad.abs().max().item()
            torch.testing.assert_close(
                together[name], parameter.grad, atol=1e-4 * scale, rtol=1e-4, msg=name
            )


@pytest.mark.parametrize("norm", NORMS)
def test_filling_changes_nothing(norm: str, generator: torch.Generator) -> None:
    model = copy_marian(make_peer("filling", norm=norm))
    pairs = draw_pairs(LENGTHS, 53, generator)
    with torch.no_grad():
        tight, loose = padded_batch(pairs), padded_batch(pairs, extra=7)
        real = tight.target != 0
        given = loose.hidden(model)[:, : tight.target.shape[1]][real]
        torch.testing.assert_close(given, tight.hidden(model)[real], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("norm", NORMS)
def test_cached_steps_equal_the_whole_target(
    norm: str, width: int, generator: torch.Generator
) -> None:
    model = copy_marian(make_peer("steps", norm=norm))
    num_sentences, length = 5, 11
    pairs = draw_pairs([(source, length) for source in (3, 7, 2, 5, 1)], 53, generator)
    # Every hypothesis of a sentence writes something else.
    targets = torch.randint(4, 53, (num_sentences * width, length), generator=generator)
    decoder = TransformerStepper(model)
    state = decoder.start([pair[0][:-1] for pair in pairs], width=width, max_length=length)
    steps = []
    for time in range(length):
        log_probabilities, state = decoder.step(state, targets[:, time])
        steps.append(log_probabilities)
    batch = padded_batch(
        [(pairs[row // width][0], target) for row, target in enumerate(targets.tolist())]
    )
    with torch.no_grad():
        whole = batch.logits(model).log_softmax(-1)
    torch.testing.assert_close(torch.stack(steps, dim=1), whole, atol=1e-5, rtol=1e-5)
