"""Scores pronouns: the third-person pronouns of a translation must equal those of the reference.

They are compared in order; other measures judge the rest of the translation.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

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
    """Whether the hypothesis has the right pronouns; None if no pronoun depends on a distant
    word.
    """
    if not sentence.pronouns(language):
        return None
    return pronoun_words(hypothesis, language) == pronoun_words(sentence.text(language), language)


def pronouns_word_for_word(chosen: Sequence[Sentence], source: str, target: str) -> float:
    """The share of sentences with correct pronouns if each pronoun gets its most frequent
    translation.

    This baseline looks only at the words that are aligned with a pronoun; more requires context.
    """
    counts: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    found: list[list[tuple[tuple[str, ...], str]]] = []
    for one in chosen:
        if one.pronouns(target):
            words, links = one.words(source), one.alignment(source, target)
            found.append([])
            for place, word in enumerate(word.lower() for word in one.words(target)):
                if pronoun_words(word, target) == (word,):
                    origin = tuple(
                        words[here].lower() for here, there in sorted(links) if there == place
                    )
                    found[-1].append((origin, word))
                    counts[origin][word] += 1
    usual = {origin: counter.most_common(1)[0][0] for origin, counter in counts.items()}
    return sum(all(usual[origin] == word for origin, word in pairs) for pairs in found) / max(
        1, len(found)
    )
