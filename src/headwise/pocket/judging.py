"""Did a translation get the pronouns right? The third-person pronouns of the hypothesis must be exactly those
of the reference, in order; everything else in the hypothesis is left to other measures.
"""

from __future__ import annotations

import re

from headwise.pocket.sentence import LANGUAGES, LanguageError, Sentence

PRONOUN_PATTERNS = {
    "en": re.compile(r"\b(?:he|she|it|they|him|her|them|his|hers|its|their|theirs)\b"),
    "zh": re.compile(r"[他她它]们?"),
    "de": re.compile(r"\b(?:er|sie|es|ihn|ihm|ihnen|ihr|(?:ihre|seine)[mnrs]?|sein)\b"),
}


def pronoun_words(text: str, language: str) -> tuple[str, ...]:
    """The third-person pronouns of a text, lower case, in order."""
    if language not in LANGUAGES:
        raise LanguageError(language)
    return tuple(PRONOUN_PATTERNS[language].findall(text.lower()))


def pronouns_correct(sentence: Sentence, language: str, hypothesis: str) -> bool | None:
    """Whether the hypothesis has the right pronouns; None if the sentence has none that follow a far word."""
    if not sentence.pronouns(language):
        return None
    return pronoun_words(hypothesis, language) == pronoun_words(sentence.text(language), language)
