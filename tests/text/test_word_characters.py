"""Words as letters: written out, cut, and never unknown."""

from headwise.text.word_characters import (
    BEGIN_WORD,
    END_WORD,
    NUM_LETTERS,
    NUM_SIGNS,
    letters_of,
    spell_words,
)


def test_a_word_stands_between_its_marks() -> None:
    assert letters_of("cat")[:6] == (1, 3 + ord("c"), 3 + ord("a"), 3 + ord("t"), 2, 0)
    assert len(letters_of("cat")) == NUM_LETTERS
    assert set(letters_of("cat")[5:]) == {0}


def test_long_words_lose_their_end_and_keep_the_mark() -> None:
    row = letters_of("x" * 99)
    assert row == (1, *[3 + ord("x")] * (NUM_LETTERS - 2), 2)


def test_every_byte_and_both_ends_of_a_sentence_have_numbers_of_their_own() -> None:
    assert max(letters_of("\U0010ffff銀行")) < min(BEGIN_WORD[1], END_WORD[1]) < NUM_SIGNS
    assert BEGIN_WORD != END_WORD
    rows = spell_words(["bank", "bench", "bank"])
    assert rows.shape == (3, NUM_LETTERS)
    assert (rows[0] == rows[2]).all()
    assert (rows[0] != rows[1]).any()
    assert spell_words([]).shape == (0, NUM_LETTERS)
