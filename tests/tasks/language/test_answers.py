"""Verdicts: the highest total, unless it compares unknown words or is shared."""

import pytest

from headwise.tasks.language.answers import SentenceScore, TokenScore, Verdict, judge


def sentence(*known: bool, score: float = -1.0) -> SentenceScore:
    words = [TokenScore("word", score, one) for one in known]
    return SentenceScore("text", (*words, TokenScore("</s>", -0.5, True)))


@pytest.mark.parametrize(
    ("known", "is_mostly"),
    [
        ((), False),
        ((True,), False),
        ((False,), True),
        ((True, False), False),
        ((True, False, False), True),
    ],
)
def test_more_than_half_is_most_and_the_end_is_no_word(
    known: tuple[bool, ...], is_mostly: bool
) -> None:
    assert sentence(*known).is_mostly_unknown is is_mostly


def test_the_highest_total_is_the_most_natural() -> None:
    assert judge([sentence(True, True), sentence(True), sentence(True, True, True)]) == Verdict(1)
    assert judge([sentence(True)]) == Verdict(0)


def test_a_tie_and_unknown_words_have_no_winner() -> None:
    assert judge([sentence(True), sentence(True)]) == Verdict(None, "tied")
    assert judge([sentence(True), sentence(True), sentence(True, True)]) == Verdict(None, "tied")
    assert judge([sentence(False), sentence(False, False)]) == Verdict(None, "unknown_words")
    assert judge([sentence(True), sentence(False)]) == Verdict(None, "unknown_words")
