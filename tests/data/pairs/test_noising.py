"""Noise by its laws: shares, distances, equal keys."""

from headwise.data.pairs.noising import FILLER, FURTHEST, add_noise
from headwise.randomness import numpy_generator

WORDS = [f"w{number}" for number in range(40)]


def test_words_are_left_out_replaced_and_moved() -> None:
    dropped = replaced = total = 0
    for seed in range(400):
        words = add_noise(" ".join(WORDS), numpy_generator("noise", seed)).split()
        kept = [word for word in words if word != FILLER]
        assert len(set(kept)) == len(kept)
        assert set(kept) <= set(WORDS)
        total += len(WORDS)
        dropped += len(WORDS) - len(words)
        replaced += len(words) - len(kept)
    assert abs(dropped / total - 0.1) < 0.01
    assert abs(replaced / (total - dropped) - 0.1) < 0.01


def test_no_word_moves_further_than_three_places(monkeypatch) -> None:
    monkeypatch.setattr("headwise.data.pairs.noising.DROPPED", 0.0)
    monkeypatch.setattr("headwise.data.pairs.noising.REPLACED", 0.0)
    moved = set()
    for seed in range(200):
        words = add_noise(" ".join(WORDS), numpy_generator(seed)).split()
        assert sorted(words) == sorted(WORDS)
        moved |= {place - WORDS.index(word) for place, word in enumerate(words)}
    assert moved == set(range(-FURTHEST, FURTHEST + 1))


def test_every_text_keeps_something_and_its_form() -> None:
    for seed in range(50):
        assert add_noise("Hund", numpy_generator(seed))
        assert add_noise("猫睡着了", numpy_generator(seed)).strip(FILLER)
        once, twice = (add_noise("a b c d e", numpy_generator(seed)) for _ in range(2))
        assert once == twice
        assert "  " not in once
    assert add_noise("", numpy_generator(1)) == ""
    chinese = {add_noise("猫睡着了", numpy_generator(seed)) for seed in range(50)}
    assert not any(" " in text for text in chinese)
    assert len(chinese) > 5
