"""Inflects German articles, adjectives, nouns and verbs for the pocket corpus, whose sentences a
grammar generates.

Each rule is a small table or function, tested against paradigms written by hand. Cases are the
letters n, a, d, g; genders m, f, n, and p for the plural of any gender.
"""

from __future__ import annotations

import re

DEFINITE = {
    "m": {"n": "der", "a": "den", "d": "dem", "g": "des"},
    "f": {"n": "die", "a": "die", "d": "der", "g": "der"},
    "n": {"n": "das", "a": "das", "d": "dem", "g": "des"},
    "p": {"n": "die", "a": "die", "d": "den", "g": "der"},
}
"""The definite article; dieser and jeder take its endings."""

DER_ENDING = {
    "m": {"n": "er", "a": "en", "d": "em", "g": "es"},
    "f": {"n": "e", "a": "e", "d": "er", "g": "er"},
    "n": {"n": "es", "a": "es", "d": "em", "g": "es"},
    "p": {"n": "e", "a": "e", "d": "en", "g": "er"},
}
EIN_ENDING = {
    "m": {"n": "", "a": "en", "d": "em", "g": "es"},
    "f": {"n": "e", "a": "e", "d": "er", "g": "er"},
    "n": {"n": "", "a": "", "d": "em", "g": "es"},
    "p": {"n": "e", "a": "e", "d": "en", "g": "er"},
}
WEAK_ENDING = {
    "m": {"n": "e", "a": "en", "d": "en", "g": "en"},
    "f": {"n": "e", "a": "e", "d": "en", "g": "en"},
    "n": {"n": "e", "a": "e", "d": "en", "g": "en"},
    "p": {"n": "en", "a": "en", "d": "en", "g": "en"},
}
MIXED_ENDING = {
    "m": {"n": "er", "a": "en", "d": "en", "g": "en"},
    "f": {"n": "e", "a": "e", "d": "en", "g": "en"},
    "n": {"n": "es", "a": "es", "d": "en", "g": "en"},
    "p": {"n": "en", "a": "en", "d": "en", "g": "en"},
}
STRONG_ENDING = {
    "m": {"n": "er", "a": "en", "d": "em", "g": "en"},
    "f": {"n": "e", "a": "e", "d": "er", "g": "er"},
    "n": {"n": "es", "a": "es", "d": "em", "g": "en"},
    "p": {"n": "e", "a": "e", "d": "en", "g": "er"},
}
PRONOUN = {
    "m": {"n": "er", "a": "ihn", "d": "ihm"},
    "f": {"n": "sie", "a": "sie", "d": "ihr"},
    "n": {"n": "es", "a": "es", "d": "ihm"},
    "p": {"n": "sie", "a": "sie", "d": "ihnen"},
}
RELATIVE = {
    "m": {"n": "der", "a": "den", "d": "dem"},
    "f": {"n": "die", "a": "die", "d": "der"},
    "n": {"n": "das", "a": "das", "d": "dem"},
    "p": {"n": "die", "a": "die", "d": "denen"},
}
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("an", "das"): "ans",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
}
EIN_WORDS = ("ein", "kein", "mein", "dein", "sein", "ihr", "unser")


def determiner(stem: str, gender: str, case: str) -> str:
    """The inflected determiner: der, dies-, jed- or one of the ein-words."""
    if stem == "der":
        return DEFINITE[gender][case]
    if stem in EIN_WORDS:
        return stem + EIN_ENDING[gender][case]
    return stem + DER_ENDING[gender][case]


def adjective_ending(stem: str | None, gender: str, case: str) -> str:
    """The adjective's ending after a determiner stem; ``None`` or a numeral calls for the strong
    ending.
    """
    if stem is None:
        return STRONG_ENDING[gender][case]
    return (MIXED_ENDING if stem in EIN_WORDS else WEAK_ENDING)[gender][case]


def noun_form(
    singular: str, plural_form: str, gender: str, case: str, *, weak: bool, plural: bool
) -> str:
    """The noun in its case: weak -n, genitive -s/-es, dative plural -n."""
    if plural:
        return plural_form + "n" if case == "d" and plural_form[-1] not in "ns" else plural_form
    if case == "n" or gender == "f":
        return singular
    if weak:
        return singular + ("n" if singular[-1] == "e" or singular in ("Bauer", "Nachbar") else "en")
    if case == "g":
        if singular[-1] in "sßxz":
            return singular + "es"
        vowels = re.findall(r"[aeiouyäöü]+", singular.lower())
        return singular + ("es" if len(vowels) == 1 and singular[-1] not in "aeiouyäöüf" else "s")
    return singular


def contract(preposition: str, article: str) -> str | None:
    """``in`` + ``dem`` = ``im``; None if the two are not contracted."""
    return CONTRACTIONS.get((preposition, article))


def finite(third: str, infinitive: str, agreement: int) -> str:
    """The present form: 0 third singular, 1 plural, 2 ich."""
    if agreement == 0:
        return third
    if agreement == 1:
        return infinitive
    if infinitive == "mögen":
        return "mag"
    return infinitive[:-1] + "e" if infinitive.endswith("ern") else infinitive[:-2] + "e"


def past(third: str, agreement: int) -> str:
    """The Präteritum; ich has the third person's form."""
    if agreement != 1:
        return third
    return third + ("n" if third.endswith("e") else "en")
