"""Occurrences by hand: whole words where words are spaced, every occurrence where they are not."""

import pytest

from headwise.text.phrase_matching import is_word_character, occurs, on_one_line, single_spaced


@pytest.mark.parametrize(
    ("phrase", "text", "expected"),
    [
        ("cat", "the cat sleeps", True),
        ("cat", "cat", True),
        ("cat", 'a "cat", it said', True),
        ("cat", "the catalogue", False),
        ("cat", "a bobcat", False),
        ("cat", "a bobcat and a cat", True),
        ("cat", "a Cat", False),
        ("Haus", "die Haustür", False),
        ("Haus-", "die Haus-Tür", True),
        ("müde", "er ist müde.", True),
        ("müde", "ermüdend", False),
        ("cafe", "cafe\u0301", False),
        ("3", "13 of 3.5", True),
        ("3", "13", False),
        ("guten Tag", "guten  \u00a0Tag!", True),
        (" guten\tTag ", "sagt guten Tag", True),
        ("喝", "我想喝茶。", True),
        ("喝茶", "我想喝 茶。", False),
        ("T", "一件T恤", True),
        ("T", "一件Tshirt", False),
        ("。", "我想喝茶。", True),
        ("ab ab c", "ab ab ab c", True),
    ],
)
def test_by_hand(phrase, text, expected):
    assert occurs(phrase, text) is expected


def test_characters_and_spaces():
    assert all(map(is_word_character, "aÄß9_한д\u0301"))
    assert not any(map(is_word_character, " -。喝ありไ'"))
    assert single_spaced(" a \x00\n\u3000b\u2028 ") == "a b"
    assert on_one_line("a\nb\x9fc") == "a b c"
    assert not occurs(" ", "a b")
    assert occurs("a b", "a  b")
    assert not occurs("a b", "a  b", exactly=True)
