"""Texts of the model's language are let through, those of another are not, and damage is told."""

import math
from pathlib import Path

import pytest

from headwise.errors import CheckpointError
from headwise.pocket import sentences
from headwise.storage import read_json, write_json
from headwise.text.known_words import FILE, KnownWords, WordCounts, find_words, load_known_words

PAIRS = [
    ("The old dog sleeps.", "Der alte Hund schläft."),
    ("The dog is old.", "Der Hund ist alt."),
]


def test_words_are_runs_of_letters_and_single_characters_where_no_spaces_are_written() -> None:
    assert find_words("The Dog’s 3 DOGS, x_y!") == ["the", "dog", "s", "dogs", "x", "y"]
    assert find_words("我爱 GPT-4，。ねこ") == ["我", "爱", "gpt", "ね", "こ"]
    assert find_words("12 + 7 = 19 …") == []


def test_probabilities_by_hand() -> None:
    counts = WordCounts.of(["the dog the cat"])
    assert counts == WordCounts({"the": 2, "cat": 1, "dog": 1}, 4)
    assert counts.log_probability("the") == pytest.approx(math.log(2.5 / 6))
    assert counts.log_probability("bird") == pytest.approx(math.log(0.5 / 6))


def test_most_words_must_be_known() -> None:
    known = KnownWords.of(PAIRS)
    assert known.judge("Is the dog old, Anna?") is None
    assert known.judge("the dog blicked Florp") is None  # one half is not most
    found = known.judge("the dax blicked Florp")
    assert found is not None
    assert (found.reason, found.num_unknown, found.num_words) == ("unknown_words", 3, 4)


def test_the_target_language_is_told_from_words_that_are_only_unknown() -> None:
    many = KnownWords.of(PAIRS * 5)
    found = many.judge("Der alte Hund ist alt.")
    assert found is not None
    assert found.reason == "target_language"
    french = many.judge("Le vieux chien dort.")
    assert french is not None
    assert french.reason == "unknown_words"


def test_nothing_is_said_of_a_text_without_words_or_by_a_model_without_any() -> None:
    assert KnownWords.of(PAIRS).judge("3 + 4 = 7") is None
    assert KnownWords.of([]).judge("Hello") is None


@pytest.mark.parametrize(
    ("source", "target", "other"), [("en", "de", "zh"), ("zh", "en", "de"), ("de", "zh", "en")]
)
def test_sentences_of_the_pocket_corpus(source: str, target: str, other: str) -> None:
    learned = KnownWords.of(
        (one.text(source), one.text(target)) for one in sentences("train", 3000)
    )
    test = list(sentences("test", 200))
    found = {
        language: [learned.judge(one.text(language)) for one in test]
        for language in (source, target, other)
    }
    assert found[source] == [None] * len(test)
    assert {one and one.reason for one in found[target]} == {"target_language"}
    # A short sentence may share most of its words with another language: English "in", "was" and
    # "war" are German too.
    assert sum(one is not None for one in found[other]) >= 0.98 * len(test)


def test_it_comes_back_and_damage_is_told(tmp_path: Path) -> None:
    assert load_known_words(tmp_path) is None
    known = KnownWords.of(PAIRS)
    known.save(tmp_path)
    assert load_known_words(tmp_path) == known
    whole = read_json(tmp_path / FILE)
    for damaged in (
        [],
        {"source": whole["source"]},
        {**whole, "target": {"total": -1, "counts": {}}},
        {**whole, "target": {"total": 3, "counts": {"der": "3"}}},
    ):
        write_json(tmp_path / FILE, damaged)
        with pytest.raises(CheckpointError, match="counts of words are missing"):
            load_known_words(tmp_path)
