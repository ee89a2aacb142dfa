"""Sentences with two right translations: judged, marked word by word, and refused for models of
another corpus."""

from typing import Any

import pytest

from headwise.errors import UsageError
from headwise.explorer.data.two_wordings import judge_sentences, pocket_wordings
from headwise.pocket import right_texts
from headwise.pocket.second_wording import judge_wording, mark_words
from tests.tasks.tiny import tiny_recipe

FIRST = "Die Köche stahlen vor vier Tagen einen Schal."
SECOND = "Vor vier Tagen stahlen die Köche einen Schal."


def origins(text: str) -> str:
    letters = {"first": "1", "second": "2", "both": "+", "neither": "-"}
    return "".join(letters[origin] for _, origin in mark_words(text, (FIRST, SECOND)))


@pytest.mark.parametrize(
    ("text", "verdict", "marks"),
    [
        (FIRST, "first", "111111111"),
        (SECOND, "second", "222222222"),
        ("Vor vier Tagen stahlen vier Tagen einen Schal.", "mixture", "222+11+++"),
        ("Die Köche stahlen die Köche einen Schal.", "mixture", "11+22+++"),
        ("Die Köche stahlen vor vor vor vier Tagen einen Schal.", "other", "111+--+++++"),
        ("Die Katze stahl einen Schal.", "other", "+--+++"),
        ("", "other", ""),
    ],
)
def test_words_are_marked_by_hand(text: str, verdict: str, marks: str) -> None:
    assert judge_wording(text, (FIRST, SECOND)) == verdict
    assert origins(text) == marks


def test_every_word_of_a_right_text_is_part_of_it() -> None:
    found = [
        right_texts("test", index, language) for index in range(60) for language in ("de", "zh")
    ]
    pairs = [right for right in found if len(right) == 2]
    assert len(pairs) > 20
    for right in pairs:
        for number, name in ((0, "first"), (1, "second")):
            marked = mark_words(right[number], right)
            assert {origin for _, origin in marked} == {name}
            assert judge_wording(right[number], right) == name


class Saying:
    """A translator that writes what a function of the two right translations gives."""

    source_language, target_language = "en", "de"

    def __init__(self, recipe: Any, say: Any) -> None:
        self.recipe, self.say = recipe, say

    def within_positions(self, settings: Any) -> Any:
        return settings

    def __call__(self, texts: list[str], settings: Any) -> list[Any]:
        rights = [right_texts("test", index, "de") for index in range(200)]
        known = iter([right for right in rights if len(right) == 2][2:])
        return [type("Said", (), {"text": self.say(*next(known))})() for _ in texts]


def test_sentences_are_judged_from_the_number_asked_for() -> None:
    recipe = tiny_recipe("data.train={kind: pocket, count: 300, second_wording: 0.4}")
    for say, verdict in (
        (lambda first, second: first, "first"),
        (lambda first, second: second, "second"),
        (lambda first, second: "Nein.", "other"),
    ):
        found = judge_sentences(Saying(recipe, say), None, first=2, count=5)  # type: ignore[arg-type]
        assert [one.verdict for one in found] == [verdict] * 5


def test_what_a_model_has_seen_follows_from_its_recipe() -> None:
    both = tiny_recipe("data.train={kind: pocket, count: 300, second_wording: 0.4}")
    assert pocket_wordings(both) == "both"
    assert pocket_wordings(tiny_recipe()) == "one"
    assert pocket_wordings(tiny_recipe("data.train=distilled/train")) == "other"
    elsewhere = tiny_recipe("data.train=my/train", "data.valid=my/valid", "data.test=null")
    assert pocket_wordings(elsewhere) is None
    with pytest.raises(UsageError, match=r"train pocket data\.train\.second_wording=0\.4"):
        judge_sentences(Saying(elsewhere, None), None, first=0, count=1)  # type: ignore[arg-type]
