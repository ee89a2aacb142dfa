"""The corpus as a whole: pure, split without leaks, large, and a function in all six directions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import permutations

import pytest

from headwise.pocket import (
    LANGUAGES,
    SPLITS,
    LanguageError,
    Sentence,
    SplitError,
    held_out,
    lemmas,
    patterns,
    sentence,
    sentence_count_lower_bound,
    sentences,
    texts,
)
from headwise.pocket.random_draw import Draw


@pytest.fixture(scope="module")
def train() -> list[Sentence]:
    return list(sentences("train", 30_000))


@pytest.fixture(scope="module")
def held() -> dict[str, list[Sentence]]:
    return {split: list(sentences(split, 1500)) for split in SPLITS if split != "train"}


def test_a_sentence_is_a_pure_function() -> None:
    for split in SPLITS:
        once = [sentence(split, index, seed=3) for index in range(20)]
        again = list(sentences(split, 15, seed=3, start=5))
        assert once[5:] == again
        assert once != [sentence(split, index, seed=4) for index in range(20)]


def test_chance_is_the_same_on_every_machine() -> None:
    draw = Draw("0/train/0/0")
    assert [draw.below(1000) for _ in range(6)] == [892, 943, 818, 373, 897, 956]


def test_sentences_do_not_depend_on_hash_seeds() -> None:
    code = (
        "from headwise.pocket import sentences; "
        "print([one.text('de') for one in sentences('unseen', 40)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={
                **os.environ,
                "PYTHONHASHSEED": salt,
                "PYTHONUTF8": "1",
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            capture_output=True,
            check=True,
        ).stdout
        for salt in ("1", "2")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_in_two_splits(
    train: list[Sentence], held: dict[str, list[Sentence]], language: str
) -> None:
    texts = {"train": {one.text(language) for one in train}}
    texts.update({split: {one.text(language) for one in found} for split, found in held.items()})
    for first, second in permutations(SPLITS, 2):
        assert not texts[first] & texts[second]


def test_held_out_combinations_are_only_in_unseen(
    train: list[Sentence], held: dict[str, list[Sentence]]
) -> None:
    seen = {pair for one in train + held["valid"] + held["test"] for pair in one.pairs}
    assert not any(held_out(pair) for pair in seen)
    for one in held["unseen"]:
        new = {pair for pair in one.pairs if held_out(pair)}
        assert new
        assert not new & seen


@pytest.mark.parametrize("language", LANGUAGES)
def test_unseen_has_no_unknown_words(
    train: list[Sentence], held: dict[str, list[Sentence]], language: str
) -> None:
    counts = Counter(word for one in train for word in one.words(language))
    unseen = Counter(word for one in held["unseen"] for word in one.words(language))
    rare = sum(number for word, number in unseen.items() if counts[word] == 0)
    assert rare / unseen.total() < 0.003


@pytest.mark.parametrize(("source", "target"), list(permutations(LANGUAGES, 2)))
def test_translation_is_a_function(train: list[Sentence], source: str, target: str) -> None:
    translations: dict[str, set[str]] = defaultdict(set)
    for one in train:
        translations[one.text(source)].add(one.text(target))
    several = sum(len(found) for found in translations.values() if len(found) > 1)
    assert several / len(train) < 0.001


def test_the_corpus_is_large_and_varied(train: list[Sentence]) -> None:
    assert len(patterns()) >= 60
    assert len({one.name for one in patterns()}) == len(patterns())
    for language in LANGUAGES:
        assert len(lemmas(language)) >= 400
    assert sentence_count_lower_bound() >= 1_000_000
    assert len({one.text("en") for one in train}) > 0.93 * len(train)
    assert {one.pattern for one in train} == {one.name for one in patterns()}


def test_sentences_are_short_and_many_have_pronouns(train: list[Sentence]) -> None:
    lengths = [len(one.words("en")) for one in train]
    assert 8 < sum(lengths) / len(lengths) < 12
    assert max(lengths) <= 22
    share = sum(bool(one.pronouns("de")) for one in train) / len(train)
    assert 0.14 < share < 0.25


def test_wrong_names_are_refused() -> None:
    with pytest.raises(SplitError, match=r"dev.*train, valid, test, unseen.*pass one"):
        sentence("dev", 0)
    with pytest.raises(LanguageError, match=r"fr.*en, zh, de.*pass one"):
        sentence("train", 0).text("fr")


@pytest.mark.parametrize("languages", [("en", "de"), ("zh", "en"), ("de",)])
@pytest.mark.parametrize("split", ["train", "unseen"])
def test_texts_are_those_of_the_sentences(split: str, languages: tuple[str, ...]) -> None:
    expected = [
        tuple(one.text(language) for language in languages) for one in sentences(split, 41, seed=3)
    ]
    assert list(texts(split, 41, languages, seed=3)) == expected


def test_texts_of_an_unknown_language_are_refused() -> None:
    with pytest.raises(LanguageError, match="got language 'fr'"):
        next(texts("train", 1, ("en", "fr")))
