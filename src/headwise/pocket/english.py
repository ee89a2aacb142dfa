"""Inflects English words for the pocket corpus, whose sentences a grammar generates: a or an,
plurals, third person -s, -ing forms and comparison.

These are the regular forms; irregular ones are in the lexicon.
"""

from __future__ import annotations

import re

VOWELS = "aeiou"


def article(next_word: str) -> str:
    """``a`` or ``an`` before the next word, by its sound."""
    return "an" if next_word[0] in VOWELS and not next_word.startswith("uni") else "a"


def plural(singular: str) -> str:
    """The regular plural."""
    if singular.endswith(("s", "x", "ch", "sh")) or singular in ("potato", "tomato"):
        return singular + "es"
    if singular.endswith("y") and singular[-2] not in VOWELS:
        return singular[:-1] + "ies"
    return singular + "s"


def third_person(base: str) -> str:
    """The third person singular of the present."""
    if base == "have":
        return "has"
    return plural(base) if not base.endswith("o") else base + "es"


def is_short_closed(word: str) -> bool:
    """One syllable ending consonant-vowel-consonant, so that the last letter doubles: big, cut,
    swim.
    """
    return bool(re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]", word))


def ing(base: str) -> str:
    """The -ing form."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return base + base[-1] + "ing" if is_short_closed(base) else base + "ing"


def comparison(adjective: str, ending: str) -> tuple[str, ...]:
    """``taller``/``tallest`` or ``more``/``most`` before the word; ending is ``er`` or ``est``."""
    syllables = len(re.findall(r"[aeiouy]+", re.sub(r"e$", "", adjective)))
    if syllables > 1 and not adjective.endswith("y") and adjective not in ("clever",):
        return ("more" if ending == "er" else "most", adjective)
    if adjective.endswith("y"):
        return (adjective[:-1] + "i" + ending,)
    if adjective.endswith("e"):
        return (adjective[:-1] + ending,)
    return (
        (adjective + adjective[-1] + ending,)
        if is_short_closed(adjective)
        else (adjective + ending,)
    )
