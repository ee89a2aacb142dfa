"""Phrases for one tokenizer: what it cannot write, or what would cost too much, is refused."""

import re

import pytest

from headwise.decoding.rules import phrases
from headwise.decoding.rules.phrases import check_shortest, encode_phrases, rules_of
from headwise.decoding.rules.text_rules import make_rules
from headwise.decoding.search.beam import BeamSettings
from headwise.errors import SettingsError, UsageError
from headwise.settings import check_settings
from headwise.text.character_tokenizer import learn_characters
from headwise.text.sentencepiece_tokenizer import learn_pieces
from headwise.text.spelling import Spelling
from headwise.text.tokenizer import Tokenizer
from headwise.text.word_tokenizer import learn_words
from tests.decoding.rules.test_text_rules import LINES, learn

REPEATED = (". " * 25, "." * 50, ", " * 25, "?" * 50, "! " * 25, "茶" * 50, "我 " * 25, "x1")


def test_repeated_phrases_take_states_by_their_bytes():
    rules = make_rules(REPEATED, (), Spelling.of(learn("zh", "bpe").surfaces()))
    assert rules is not None
    assert len(rules.moves) < 8 * sum(len(phrase.encode()) for phrase in REPEATED)


@pytest.mark.parametrize(
    ("forbidden", "reason"),
    [
        (
            (". " * 1000,),
            r"the 1 forbidden and required phrases \(1,999 bytes together\) take too much work",
        ),
        (
            ("üa" * 60, "aü" * 60, "a" + "üa" * 60),
            r"the 3 .* phrases \(541 bytes together\) take too much work to watch for",
        ),
    ],
)
def test_a_refusal_is_kept(forbidden, reason, monkeypatch):
    """Phrases with a space at every position, and phrases that bytes of an unknown kind
    multiply."""
    tokenizer = learn("de", "unigram")
    calls = []
    monkeypatch.setattr(
        phrases, "make_rules", lambda *given: calls.append(given) or make_rules(*given)
    )
    for _ in range(3):
        with pytest.raises(UsageError, match=reason):
            rules_of(tokenizer, forbidden, ())
    assert len(calls) == 1


@pytest.mark.parametrize("kind", ["forbidden", "required"])
@pytest.mark.parametrize(
    ("phrase", "name"), [("▁", "U+2581"), ("a\uf8fe1", "U+F8FE"), ("\ufffd", "U+FFFD")]
)
def test_characters_that_bytes_write_unseen_are_refused(kind, phrase, name):
    with pytest.raises(
        SettingsError, match=rf"the forbidden or required phrase .* holds {re.escape(name)}, which"
    ):
        check_settings(BeamSettings, {kind: [phrase]})


def test_equal_phrases_share_their_rules():
    tokenizer = learn("zh", "bpe")
    settings = BeamSettings(forbidden=("茶",))
    assert encode_phrases(settings, tokenizer).rules is encode_phrases(settings, tokenizer).rules


@pytest.mark.parametrize("kind", ["words", "characters", "pieces"])
def test_what_the_vocabulary_cannot_write_is_refused(kind):
    lines = [*LINES["de"], *LINES["en"]]
    tokenizer: Tokenizer
    if kind == "words":
        tokenizer = learn_words(lines, size=99, min_count=1, lowercase=False)
    elif kind == "characters":
        tokenizer = learn_characters(lines, size=99, min_count=1)
    else:
        tokenizer = learn_pieces(
            lines,
            algorithm="bpe",
            size=60,
            byte_fallback=False,
            coverage=1.0,
            normalization="identity",
        )
    for name, settings in {
        "required phrase": BeamSettings(required=("Hund", "Xyzzy")),
        "forbidden phrase": BeamSettings(forbidden=("Hund", "Xyzzy")),
        "prefix": BeamSettings(prefix="Xyzzy"),
    }.items():
        with pytest.raises(
            UsageError,
            match=f"the {name} 'Xyzzy' is outside the model's vocabulary, which reads it as",
        ):
            encode_phrases(settings, tokenizer)
    # "Häuser," is a word of that vocabulary, and the text it writes holds "Häuser".
    assert encode_phrases(BeamSettings(forbidden=("Häuser",)), tokenizer).rules is not None


def test_what_a_lowercasing_vocabulary_never_writes_is_refused():
    tokenizer = learn_words(LINES["de"], size=99, min_count=1, lowercase=True)
    with pytest.raises(
        UsageError, match="'Hund' is outside the model's vocabulary, which reads it as 'hund'"
    ):
        encode_phrases(BeamSettings(required=("Hund",)), tokenizer)


def test_the_shortest_sentence_has_room():
    tokenizer = learn("de", "bpe")
    fits = BeamSettings(prefix="Haus und", max_length=40)
    check_shortest(fits, tokenizer)
    with pytest.raises(
        UsageError, match=r"the end of the sentence take \d+ tokens, but max_length is 3 here"
    ):
        check_shortest(fits.model_copy(update={"max_length": 3}), tokenizer)
