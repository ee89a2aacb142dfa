"""What each drafter proposes, on rows worked out by hand."""

from collections.abc import Sequence

import pytest
import torch

from headwise.decoding.drafting.choices import make_drafter
from headwise.decoding.drafting.heads import HeadsDrafter, HeadsDrafterSettings, check_heads
from headwise.decoding.drafting.jacobi import JacobiDrafter
from headwise.decoding.drafting.ngram import NgramDrafter, NgramDrafterSettings
from headwise.decoding.drafting.protocol import DraftedRow
from headwise.errors import UsageError
from headwise.text.tokenizer import EOS
from tests.decoding.drafting.fakes import FakeVerifier


def row_of(
    tokens: Sequence[int],
    source: Sequence[int] = (),
    guesses: Sequence[int] = (),
    choices: dict[int, int] | None = None,
) -> DraftedRow:
    return DraftedRow(
        0, source, 50, tokens=list(tokens), guesses=guesses, choices=dict(choices or {})
    )


@pytest.mark.parametrize(
    ("tokens", "source", "draft"),
    [
        ([5, 6, 7, 8, 5, 6], (), [7, 8, 5]),  # the last two stood before
        ([5, 6, 7, 9, 6, 8, 4, 6], (), [8, 4, 6]),  # the latest match of one
        ([9, 5], (4, 5, 6, 7), [6, 7]),  # in the source
        ([5, 6, 7, 4, 6], (6, 9), [7, 4, 6]),  # what was written comes first
        ([9, 5], (5, EOS), []),  # nothing special is proposed
        ([9, 4], (5, 6, 4), []),  # nothing comes after it
        ([], (5, 6), []),
    ],
)
def test_ngrams(tokens: list[int], source: tuple[int, ...], draft: list[int]) -> None:
    (found,) = NgramDrafter(3).draft([row_of(tokens, source)], 3)
    assert list(found) == draft


def test_longer_ngrams_come_first() -> None:
    row = row_of([4, 5, 6, 9, 5, 7, 4, 5])
    assert list(NgramDrafter(2).draft([row], 2)[0]) == [6, 9]
    assert list(NgramDrafter(1).draft([row], 2)[0]) == [7, 4]


@pytest.mark.parametrize(
    ("row", "draft"),
    [
        (row_of([]), [1, 1, 1, 1]),  # nothing is known: the beginning of the sentence
        (row_of([5], guesses=[6, 7]), [6, 7, 7, 7]),
        (row_of([5], choices={5: 6, 6: 7, 7: 5}), [6, 7, 5, 6]),  # a chain, round and round
        (row_of([5], guesses=[6, 9, 8], choices={5: 6}), [6, 9, 8, 8]),
        (row_of([5], choices={5: EOS, EOS: 7}), [EOS] * 4),
        (row_of([5, EOS], guesses=[4]), []),  # done
    ],
)
def test_jacobi(row: DraftedRow, draft: list[int]) -> None:
    assert list(JacobiDrafter().draft([row], 4)[0]) == draft


class _Heads(FakeVerifier):
    def __init__(self) -> None:
        super().__init__(lambda source, prefix: [], [], 3)

    def look_ahead(self, tokens: torch.Tensor, count: int) -> torch.Tensor:
        return tokens[:, None] + torch.arange(1, count + 1)


def test_heads_are_asked_from_the_second_round_on() -> None:
    drafter = HeadsDrafter(_Heads())
    assert drafter.draft([row_of([]), row_of([])], 3) == [(), ()]
    assert drafter.draft([row_of([5]), row_of([4, 9])], 3) == [[6, 7, 8], [10, 11, 12]]


def test_each_setting_makes_its_drafter() -> None:
    drafter = make_drafter(NgramDrafterSettings(longest=5), _Heads())
    assert isinstance(drafter, NgramDrafter)
    assert drafter.longest == 5
    assert isinstance(make_drafter(HeadsDrafterSettings(), _Heads()), HeadsDrafter)


def test_heads_that_do_not_fit_the_model() -> None:
    check_heads(4, 4)
    with pytest.raises(UsageError, match=r"decoding\.block is 5, but the model has 4 draft heads"):
        check_heads(4, 5)
    with pytest.raises(UsageError, match=r"a model without draft heads; use .*jacobi or ngram"):
        check_heads(0, 4)
