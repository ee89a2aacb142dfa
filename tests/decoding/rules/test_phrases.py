"""Phrases made to be costly are refused in words and once; so are characters that bytes write
unseen."""

import re

import pytest

from headwise.decoding.rules import phrases
from headwise.decoding.rules.phrases import rules_of
from headwise.decoding.rules.text_rules import make_rules
from headwise.decoding.search.beam import BeamSettings
from headwise.errors import SettingsError, UsageError
from headwise.settings import check_settings
from headwise.text.spelling import Spelling
from tests.decoding.rules.test_text_rules import learn

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
