"""Copies of a search: the end once, limits, samples that follow from their sentence alone."""

import pytest
import torch

from headwise.models.parallel.fertility import limit_sums
from headwise.models.parallel.source_copies import (
    FertilityScores,
    SourceCopies,
    likely_copies,
    sampled_copies,
)
from headwise.text.tokenizer import EOS, PAD

TOKENS = torch.tensor([[5, 6, 7, EOS, PAD], [8, 9, 10, 11, EOS], [12, EOS, PAD, PAD, PAD]])
SEGMENT = (TOKENS != PAD).long()
MOST = 5


@pytest.fixture
def scores(generator: torch.Generator) -> FertilityScores:
    return FertilityScores(torch.randn(3, 5, MOST + 1, generator=generator), TOKENS, SEGMENT)


def certain(fertility: list[list[int]]) -> FertilityScores:
    logits = torch.nn.functional.one_hot(torch.tensor(fertility), MOST + 1).float() * 50
    return FertilityScores(logits, TOKENS, SEGMENT)


def limits(least: int, most: int) -> dict[str, torch.Tensor]:
    return {"least": torch.full((3,), least), "most": torch.full((3,), most)}


def written(found: SourceCopies) -> list[list[int]]:
    return [[token for token in row if token != PAD] for row in found.tokens.tolist()]


def test_words_are_copied_by_their_fertility_and_the_end_once() -> None:
    found = likely_copies(
        certain([[2, 0, 1, 4, 0], [0, 0, 3, 0, 0], [0, 1, 0, 0, 0]]), **limits(1, 40)
    )
    assert written(found) == [[5, 5, 7, EOS], [10, 10, 10, EOS], [12, EOS]]
    assert found.sentence.tolist() == [0, 1, 2]


def test_the_log_probability_is_that_of_all_fertilities(scores: FertilityScores) -> None:
    found = likely_copies(scores, **limits(1, 40))
    table = scores.logits.log_softmax(-1)
    for row, tokens in enumerate(TOKENS.tolist()):
        total = 0.0
        for place, token in enumerate(tokens):
            if token == EOS:
                total += float(table[row, place, 1])
            elif token != PAD:
                count = written(found)[row].count(token)
                total += float(table[row, place, count])
        assert float(found.log_probability[row]) == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("length", [2, 3, 7, 19])
def test_the_number_of_copies_can_be_given(scores: FertilityScores, length: int) -> None:
    for row in written(likely_copies(scores, **limits(length, length))):
        assert len(row) == length
        assert row[-1] == EOS
        assert row[:-1] == sorted(row[:-1])  # source tokens stay in order


def test_sums_keep_to_their_limits_and_else_nothing_changes() -> None:
    fertility = torch.tensor([[2, 0, 3, 1, 0], [1, 1, 0, 0, 0]])
    segment = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]])

    def limited(least: int, most: int) -> list[list[int]]:
        bounds = {"least": torch.full((2,), least), "most": torch.full((2,), most)}
        return limit_sums(fertility, segment, **bounds).tolist()

    assert limited(1, 9) == fertility.tolist()
    assert limited(0, 4) == [[2, 0, 2, 0, 0], [1, 1, 0, 0, 0]]
    assert limited(5, 9) == [[2, 0, 3, 1, 0], [1, 1, 3, 0, 0]]


def sample(scores: FertilityScores, names: list[int], **changes: float) -> SourceCopies:
    settings = {"count": 7, "temperature": 1.0} | changes
    return sampled_copies(
        scores,
        least=torch.ones(len(names), dtype=torch.int64),
        most=torch.full((len(names),), 40),
        count=int(settings["count"]),
        temperature=settings["temperature"],
        generators=[torch.Generator().manual_seed(name) for name in names],
    )


def test_the_first_is_the_most_likely_and_all_are_at_a_low_temperature(
    scores: FertilityScores,
) -> None:
    likely = written(likely_copies(scores, **limits(1, 40)))
    drawn = written(sample(scores, [3, 1, 4]))
    assert drawn[::7] == likely
    assert len({tuple(row) for row in drawn}) > 3
    cold = written(sample(scores, [3, 1, 4], temperature=1e-4))
    assert cold == [row for row in likely for _ in range(7)]
    assert written(sample(scores, [3, 1, 4], count=1)) == likely


def test_the_samples_of_a_sentence_do_not_depend_on_its_batch(scores: FertilityScores) -> None:
    together = written(sample(scores, [3, 1, 4]))
    for row, name in enumerate([3, 1, 4]):
        width = int(SEGMENT[row].sum())
        alone = FertilityScores(*(x[row : row + 1, :width] for x in scores))
        assert written(sample(alone, [name])) == together[7 * row : 7 * row + 7]
