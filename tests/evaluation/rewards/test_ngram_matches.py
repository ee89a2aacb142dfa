"""Shared n-grams of many texts at once: against counting one by one; pieces of a text against the
whole."""

import random
from collections import Counter
from itertools import chain

import numpy as np
import pytest

from headwise.evaluation.rewards import ngram_matches
from headwise.evaluation.rewards.ngram_matches import NumberedWords, count_matches
from headwise.evaluation.translation import build_metrics


def test_matches_are_those_of_counting_one_by_one() -> None:
    generator = random.Random(1)
    ours, theirs = (
        [generator.choices(range(5), k=generator.randrange(12)) for _ in range(count)]
        for count in (101, 7)
    )
    which = [generator.randrange(7) for _ in ours]
    ragged = [
        (np.array([*chain(*side)], dtype=np.int64), np.array([len(one) for one in side]))
        for side in (ours, theirs)
    ]
    found = count_matches(*ragged, np.array(which), max_order=4)
    for own, number, counted in zip(ours, which, found.tolist(), strict=True):
        for order in range(1, 5):
            sides = [
                Counter(tuple(one[i : i + order]) for i in range(len(one) + 1 - order))
                for one in (own, theirs[number])
            ]
            assert counted[order - 1] == (sides[0] & sides[1]).total()
    nothing = np.array([], dtype=np.int64), np.array([0])
    assert not count_matches(ragged[0], nothing, np.zeros(101, dtype=np.int64), max_order=4).any()


@pytest.mark.parametrize("pretokenized", [False, True])
def test_words_of_a_text_are_those_of_its_pieces(
    monkeypatch: pytest.MonkeyPatch, *, pretokenized: bool
) -> None:
    generator = random.Random(2)
    alphabet = ["a", "ß", "7", ".", ",", "-", "'", "?", "&", "&amp;", "<", "_", "\u3000", "\t", " "]
    texts = ["".join(generator.choices(alphabet, k=generator.randrange(30))) for _ in range(3001)]
    tokenize = build_metrics("de", pretokenized=pretokenized)["bleu"].tokenizer
    for most in (1 << 18, 10):
        monkeypatch.setattr(ngram_matches, "MAX_KEPT", most)
        words = NumberedWords(tokenize, by_pieces=True)
        words.number(texts[:100])
        flat, lengths = words.number(texts)
        names = {number: word for word, number in words._numbers.items()}
        for part, text in zip(np.split(flat, lengths.cumsum()[:-1]), texts, strict=True):
            assert [names[one] for one in part.tolist()] == tokenize(text).split()
