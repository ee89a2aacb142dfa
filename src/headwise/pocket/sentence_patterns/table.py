"""Lists all sentence patterns from which the pocket corpus, the small built-in corpus, is
generated.

The generator draws a pattern by its index, so a change of their order changes the corpus.
"""

from functools import cache

from headwise.pocket.pattern import Pattern
from headwise.pocket.sentence_patterns import (
    actions,
    ambiguous_words,
    clauses,
    descriptions,
    numbers_and_dates,
    places,
    pronouns_for_people,
    pronouns_for_things,
    questions,
)


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns of the corpus."""
    modules = (
        actions,
        questions,
        places,
        descriptions,
        numbers_and_dates,
        clauses,
        pronouns_for_things,
        pronouns_for_people,
        ambiguous_words,
    )
    return tuple(pattern for module in modules for pattern in module.PATTERNS)


@cache
def pattern_wheel() -> tuple[Pattern, ...]:
    """Every pattern as often as its weight, so that one uniform choice respects the weights."""
    return tuple(pattern for pattern in patterns() for _ in range(pattern.weight))
