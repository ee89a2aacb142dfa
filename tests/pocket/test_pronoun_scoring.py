"""What pronouns test, pair by pair."""

from headwise.pocket import NOTES_EXAMPLES, pronouns_word_for_word, sentences


def test_pronouns_translated_word_for_word() -> None:
    """it is es and sie in the notes' two sentences: one of two is right; in English and Chinese
    both are.
    """
    assert pronouns_word_for_word(NOTES_EXAMPLES, "en", "de") == 0.5
    assert pronouns_word_for_word(NOTES_EXAMPLES, "zh", "de") == 0.5
    assert pronouns_word_for_word(NOTES_EXAMPLES, "zh", "en") == 1.0
    assert pronouns_word_for_word((), "zh", "en") == 0.0


def test_only_german_asks_what_a_pronoun_stands_for() -> None:
    chosen = list(sentences("test", 500))
    shares = {
        f"{source}-{target}": pronouns_word_for_word(chosen, source, target)
        for source, target in (("en", "de"), ("zh", "de"), ("zh", "en"), ("en", "zh"))
    }
    assert max(shares["en-de"], shares["zh-de"]) < 0.5
    assert shares["zh-en"] > 0.9  # what is left is the case: he and him are both 他
    assert shares["en-zh"] == 1.0
