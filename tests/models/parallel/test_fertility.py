"""Copies against repeat_interleave, and the three ways to choose fertilities."""

import pytest
import torch
from torch import Tensor

from headwise.errors import UsageError
from headwise.initialization import initialize
from headwise.models.parallel.fertility import (
    FertilityClassifier,
    copy_by_fertility,
    expected_fertilities,
    most_likely_fertilities,
    sample_fertilities,
)

# Two packed rows: sentences of 3 and 2 tokens and padding; one of 5 tokens and padding.
SEGMENT = torch.tensor([[1, 1, 1, 2, 2, 0, 0], [1, 1, 1, 1, 1, 0, 0]])


def logits_of(fertility: Tensor, *, most: int = 5) -> Tensor:
    """Logits under which these fertilities are (nearly) certain."""
    return torch.nn.functional.one_hot(fertility, most + 1).float() * 50


def test_copies_are_those_of_each_sentence_alone(generator: torch.Generator) -> None:
    fertility = torch.randint(4, SEGMENT.shape, generator=generator)
    fertility[0, :2], fertility[0, 2:5] = torch.tensor([0, 3]), torch.tensor([0, 2, 1])
    x = torch.randn(2, 7, 3, generator=generator)
    tokens = torch.randint(4, 11, SEGMENT.shape, generator=generator)
    copies = copy_by_fertility(fertility, SEGMENT, width=19)
    for row in range(2):
        begin = 0
        for number in range(1, int(SEGMENT[row].max()) + 1):
            inside = SEGMENT[row] == number
            expected = x[row, inside].repeat_interleave(fertility[row, inside], dim=0)
            here = slice(begin, begin + len(expected))
            assert torch.equal(copies.copy(x)[row, here], expected)
            repeated = tokens[row, inside].repeat_interleave(fertility[row, inside])
            assert torch.equal(copies.copy_tokens(tokens)[row, here], repeated)
            assert (copies.segment[row, here] == number).all()
            assert copies.position[row, here].tolist() == list(range(len(expected)))
            begin += len(expected)
        assert (copies.segment[row, begin:] == 0).all()
        assert (copies.position[row, begin:] == 0).all()
        assert (copies.copy(x)[row, begin:] == 0).all()
        assert (copies.copy_tokens(tokens)[row, begin:] == 0).all()


def test_the_width_is_the_longest_row_or_cuts_off() -> None:
    fertility = torch.tensor([[2, 0, 1, 3, 0, 5, 5], [0, 4, 0, 0, 0, 1, 1]])
    copies = copy_by_fertility(fertility, SEGMENT)
    assert copies.origin.tolist() == [[0, 0, 2, 3, 3, 3], [1, 1, 1, 1, 0, 0]]
    assert copies.segment.tolist() == [[1, 1, 1, 2, 2, 2], [1, 1, 1, 1, 0, 0]]
    narrow = copy_by_fertility(fertility, SEGMENT, width=3)
    assert torch.equal(narrow.origin, copies.origin[:, :3])
    assert torch.equal(narrow.position, copies.position[:, :3])


def test_gradients_reach_the_copied_tokens(generator: torch.Generator) -> None:
    fertility = torch.tensor([[2, 0, 1, 3, 0, 5, 5], [0, 4, 0, 0, 0, 1, 1]])
    x = torch.randn(2, 7, 3, generator=generator, requires_grad=True)
    copy_by_fertility(fertility, SEGMENT).copy(x).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad[..., 0].long(), fertility * (SEGMENT > 0))


def test_the_most_likely_and_the_expected_by_hand() -> None:
    # p = (0.2, 0.5, 0.3, 0 …): most likely 1, expectation 1.1; (0.45, 0, 0, 0.55): 3 and 1.65.
    probabilities = torch.zeros(2, 7, 4)
    probabilities[..., :3] = torch.tensor([0.2, 0.5, 0.3])
    probabilities[0, 1] = torch.tensor([0.45, 0.0, 0.0, 0.55])
    logits = probabilities.log().clamp_min(-100)
    assert most_likely_fertilities(logits, SEGMENT)[0].tolist() == [1, 3, 1, 1, 1, 0, 0]
    assert expected_fertilities(logits, SEGMENT)[0].tolist() == [1, 2, 1, 1, 1, 0, 0]


def test_no_sentence_is_left_without_a_token() -> None:
    # Everywhere 0 is the most likely; in the first row's sentences tokens 1 and 4 are the most
    # likely to be copied, in the second row all tokens equally: the first is.
    logits = torch.zeros(2, 7, 3)
    logits[..., 0] = 9.0
    logits[0, 1, 2] = logits[0, 4, 1] = 8.0
    for choose in (most_likely_fertilities, expected_fertilities):
        assert choose(logits, SEGMENT).tolist() == [[0, 1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0, 0]]
    logits[0, 0, 1] = 20.0
    assert most_likely_fertilities(logits, SEGMENT)[0].tolist() == [1, 0, 0, 0, 1, 0, 0]


def test_a_certain_sample_is_the_most_likely_one(generator: torch.Generator) -> None:
    logits = torch.randn(2, 7, 6, generator=generator)
    samples = sample_fertilities(
        logits, SEGMENT, num_samples=3, generator=generator, temperature=1e-4
    )
    assert torch.equal(samples, most_likely_fertilities(logits, SEGMENT).expand(3, -1, -1))


def test_samples_follow_their_distribution(generator: torch.Generator) -> None:
    logits = torch.randn(1, 3, 4, generator=generator)
    logits[..., 0] = -100  # so that no sentence has to be given a token
    segment = torch.ones(1, 3, dtype=torch.long)
    count = 4000
    samples = sample_fertilities(
        logits, segment, num_samples=count, generator=generator, temperature=0.7
    )
    shares = torch.nn.functional.one_hot(samples[:, 0], 4).float().mean(0)
    # Five standard deviations of a share of 1/2, the widest.
    torch.testing.assert_close(
        shares, (logits[0] / 0.7).softmax(-1), rtol=0, atol=5 * (0.25 / count) ** 0.5
    )
    assert len(torch.unique(samples.flatten(1), dim=0)) > 5


def test_a_temperature_of_zero_is_refused(generator: torch.Generator) -> None:
    with pytest.raises(UsageError, match="use most_likely_fertilities for the limit 0"):
        sample_fertilities(
            torch.zeros(1, 2, 3),
            torch.ones(1, 2).long(),
            num_samples=1,
            generator=generator,
            temperature=0.0,
        )


def test_the_classifier_has_a_logit_for_each_fertility(generator: torch.Generator) -> None:
    classifier = FertilityClassifier(5, most=7)
    initialize(classifier, generator)
    memory = torch.randn(2, 3, 5, generator=generator)
    assert classifier(memory).shape == (2, 3, 8)
    torch.testing.assert_close(classifier(memory)[1, 2], classifier.output.weight @ memory[1, 2])


def test_certain_fertilities_are_found_by_all(generator: torch.Generator) -> None:
    fertility = torch.tensor([[2, 0, 1, 3, 0, 0, 0], [0, 4, 0, 0, 5, 0, 0]])
    logits = logits_of(fertility)
    assert torch.equal(most_likely_fertilities(logits, SEGMENT), fertility)
    assert torch.equal(expected_fertilities(logits, SEGMENT), fertility)
    drawn = sample_fertilities(logits, SEGMENT, num_samples=2, generator=generator)
    assert torch.equal(drawn, fertility.expand(2, -1, -1))
