"""Computes the size of the pocket corpus (sentences that a grammar generates): words counted from
the tables, and a lower bound on sentences.

A few patterns, with the simplest subjects and objects only, already give millions of sentences.
"""

from __future__ import annotations

from functools import cache

from headwise.pocket.lexicon import adjectives, names, nouns, places, times, verbs, verbs_of
from headwise.pocket.sentence import LANGUAGES, LanguageError
from headwise.pocket.sentence_patterns.table import patterns
from headwise.pocket.template import Token

COUNTED_PATTERNS = ("past", "past-time-first", "ask-past")
"""Patterns that take any verb, and whose English texts differ from each other."""


@cache
def lemmas(language: str) -> frozenset[str]:
    """The dictionary forms of a language: one per noun, verb, adjective and name, and the fixed
    words.
    """
    if language not in LANGUAGES:
        raise LanguageError(language)
    found: set[str] = set()
    for noun in nouns() + tuple(place.noun for place in places()):
        found.add(getattr(noun, language))
    for verb in verbs():
        german = verb.de_prefix + verb.de_infinitive
        found.add({"en": " ".join(verb.en_base), "zh": verb.zh, "de": german}[language])
    found.update(getattr(one, language) for one in adjectives())
    for kind in ("he", "she", "city", "country", "language", "month", "weekday"):
        found.update(getattr(one, language) for one in names(kind))
    if language == "zh":
        found.update(noun.measure for noun in nouns() if not noun.mass)
    return frozenset(found)


@cache
def fixed_words(language: str) -> frozenset[str]:
    """The words of the wordings themselves, in lower case."""
    if language not in LANGUAGES:
        raise LanguageError(language)
    return frozenset(
        part.word.lower()
        for pattern in patterns()
        for wording in pattern.wordings
        for part in getattr(wording, language)
        if isinstance(part, Token) and part.tag != "PUNCT"
    )


@cache
def sentence_count_lower_bound() -> int:
    """A number of distinct sentences that certainly exist: "the" subject, verb, a/the/this object,
    recent time.

    Every combination is a different English text, because the English words of subjects, verbs,
    objects and times differ. Adjectives, numerals, names, plurals and the other patterns are not
    counted.
    """
    combinations = sum(
        sum(1 for subject in verb.subjects if "kin" not in subject.classes)
        * max(
            0,
            sum(
                1
                for item in verb.objects
                if "kin" not in item.classes and "single" not in item.classes
            )
            - 1,
        )
        for verb in verbs_of("act") + verbs_of("once")
    )
    return combinations * 3 * len(times("recent")) * len(COUNTED_PATTERNS)
