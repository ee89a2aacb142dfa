from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from headwise.pocket import sentences
from headwise.tasks.translation.pocket_test import (
    measure_alignment,
    measure_pocket,
    scale_alignment,
)
from headwise.tasks.translation.source_sentences import Candidate
from headwise.tasks.translation.translator import Translation, Translator


class Grammar:
    """A translator that knows the answers of the pocket corpus; it swaps one pronoun when told
    to."""

    source_language, target_language = "en", "de"

    def __init__(self, split: str, count: int, *, wrong: int | None = None) -> None:
        self.answers = {one.text("en"): one.text("de") for one in sentences(split, count)}
        self.wrong = wrong

    def stream(self, texts: Iterable[str]) -> Iterator[Translation]:
        for number, text in enumerate(texts):
            answer = "" if number == self.wrong else self.answers[text]
            yield Translation(text, (Candidate(answer, 0.0, 0.0),))


@pytest.mark.parametrize("split", ["test", "unseen"])
def test_the_right_answers_score_full_marks(split: str) -> None:
    translator: Any = Grammar(split, 53)
    heard: list[tuple[int, int]] = []
    scores = measure_pocket(
        translator, split, count=53, progress=lambda done, total: heard.append((done, total))
    )
    assert scores.translation.exact_match == 1.0
    assert scores.pronoun_accuracy == 1.0
    assert scores.translation.bleu.value == pytest.approx(100.0)
    assert scores.num_pronoun_sentences > 0
    assert scores.wrong == ()
    assert heard == [(number, 53) for number in range(1, 54)]


def test_a_mistake_is_shown() -> None:
    translator: Any = Grammar("test", 53, wrong=7)
    scores = measure_pocket(translator, "test", count=53)
    assert scores.as_dict()["exact_match"] == pytest.approx(52 / 53)
    one = list(sentences("test", 8))[7]
    assert scores.wrong == ((one.text("en"), "", one.text("de")),)


def test_every_way_of_reading_attention_is_ranked(translator: Translator) -> None:
    results = measure_alignment(translator, count=5)
    assert len(results) == 2 * 3 * 2  # layers, heads and their mean, shifted or not
    rates = [result.scores.error_rate for result in results]
    assert rates == sorted(rates)
    assert all(0.0 <= rate <= 1.0 for rate in rates)
    assert results[0].as_dict()["layer"] in (0, 1)


def test_an_error_rate_has_a_scale(translator: Translator) -> None:
    """No reader of attention is better than the lowest; word order tells languages apart."""
    scale = scale_alignment("en", "de", count=5)
    assert 0.0 <= scale.lowest < scale.straight < 1.0
    assert scale.lowest <= min(
        result.scores.error_rate for result in measure_alignment(translator, count=5)
    )
    assert (
        scale_alignment("zh", "en", count=53).straight
        > scale_alignment("en", "de", count=53).straight
    )
