"""Gives part of the pocket corpus a second right translation, and finds mixtures of the two.

By default the same meaning always has the same wording. Real text is different: a sentence has
several right translations, and a model that writes all words at once cannot see which of them its
other words belong to. With `second_wording: 0.5` a sentence whose time is said last in English
begins with the time in the target language in half of the cases:

    The teacher bought a book yesterday.    Der Lehrer kaufte gestern ein Buch.
                                            Gestern kaufte der Lehrer ein Buch.
    words of both                           *Gestern kaufte gestern ein Buch.

Both orders are right, but they fill most positions differently: every choice depends on all others.
The sources are those of the default corpus. With 0.5 no teacher can prefer one of the two for a
good reason; with 0.4 the usual wording is the more probable one of every sentence, so that beam
search writes it more often than it was seen. The second German wording may be the only one of
another English sentence (*Yesterday the teacher …*), also of one in another split.

Tested against: both wordings are right, and every mixture of the two, position by position, is
found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from headwise.pocket.pattern import Wording
from headwise.pocket.random_draw import Draw
from headwise.pocket.template import Agreeing, Hole, TemplatePart, Token

SUBJECT, VERB, TIME = "s", "v", "t"
"""Slots by their names in the wordings."""
FINITE_FORMS = ("", "past", "pres", "aux")
"""Forms of a German verb in second place."""
CHANCES = 10_000
_UNIT = re.compile(r"[\u4e00-\u9fff]|\w+|[^\w\s]")


def draws_second(key: str, chance: float) -> bool:
    """Whether the sentence of this key has its second wording."""
    return Draw(f"{key}/wording").below(CHANCES) < round(chance * CHANCES)


def put_time_first(wording: Wording, language: str) -> tuple[TemplatePart, ...] | None:
    """The template of a language with its time in front; None for a wording without a second."""
    if not _says_time_last(wording.en):
        return None
    parts: tuple[TemplatePart, ...] = getattr(wording, language)
    place = next(number for number, part in enumerate(parts) if _fills(part, TIME))
    time, rest = parts[place], (*parts[:place], *parts[place + 1 :])
    if not _fills(rest[0], SUBJECT):
        return None
    if language != "de":
        return (time, *rest)
    # The German verb stays in second place, and the subject follows it.
    return (time, rest[1], rest[0], *rest[2:]) if _is_finite(rest[1]) else None


def _says_time_last(parts: tuple[TemplatePart, ...]) -> bool:
    return (
        len(parts) > 2
        and _fills(parts[0], SUBJECT)
        and _fills(parts[-2], TIME)
        and parts[-1] == Token(".", "PUNCT", ".")
    )


def _fills(part: TemplatePart, slot: str) -> bool:
    return isinstance(part, Hole) and part.slot == slot


def _is_finite(part: TemplatePart) -> bool:
    if isinstance(part, Hole):
        return part.slot == VERB and part.form in FINITE_FORMS
    return isinstance(part, Agreeing)


def mixes(hypothesis: str, right: Sequence[str]) -> bool:
    """Whether a translation mixes right ones: none of them, yet made of their words only, with one
    of them too often or in a wrong order.

    A translation that only lacks words, or has other ones, is wrong in another way.
    """
    if hypothesis in right:
        return False
    found = Counter(_units(hypothesis))
    allowed = [Counter(_units(one)) for one in right]
    most = {word: max(one[word] for one in allowed) for one in allowed for word in one}
    if not found.keys() <= most.keys():
        return False
    return any(found[word] > most[word] for word in found) or found in allowed


Verdict = Literal["first", "second", "mixture", "other"]
Origin = Literal["first", "second", "both", "neither"]


def judge_wording(hypothesis: str, right: Sequence[str]) -> Verdict:
    """Which of two right translations a text is, or a mixture of both, or neither.

    Here a mixture also has words that only the one has in this order, and words that only the other
    has: a word that is merely written twice is another mistake.
    """
    if hypothesis in right:
        return "first" if hypothesis == right[0] else "second"
    origins = {origin for _, origin in mark_words(hypothesis, right)}
    is_mixture = mixes(hypothesis, right) and {"first", "second"} <= origins
    return "mixture" if is_mixture else "other"


def mark_words(hypothesis: str, right: Sequence[str]) -> tuple[tuple[str, Origin], ...]:
    """The words of a text, each with the right translation that it is a part of.

    A right translation is part of nothing but itself. Of any other text a word is part of a
    translation if it is in the longest sequence of words that both have in the same order; of
    several longest ones, in that whose words moved least.
    """
    words = _UNIT.findall(hypothesis)
    if hypothesis in right:
        whole: Origin = "first" if hypothesis == right[0] else "second"
        return tuple((word, whole) for word in words)
    first, second = (_shared_places(_units(hypothesis), _units(one)) for one in right)
    origins: dict[tuple[bool, bool], Origin] = {
        (True, True): "both",
        (True, False): "first",
        (False, True): "second",
        (False, False): "neither",
    }
    return tuple(
        (word, origins[place in first, place in second]) for place, word in enumerate(words)
    )


def _shared_places(words: Sequence[str], right: Sequence[str]) -> frozenset[int]:
    """The places of the words that stand in the same order in `right`."""
    empty: tuple[int, int, tuple[int, ...]] = (0, 0, ())
    # best[j]: with the words so far and the first j of `right`: how many are shared, less how far
    # they moved, and their places.
    best = [empty] * (len(right) + 1)
    for place, word in enumerate(words):
        row = [empty]
        for j, other in enumerate(right):
            found = max(best[j + 1], row[j], key=lambda one: one[:2])
            if word == other:
                count, moved, places = best[j]
                longer = (count + 1, moved - abs(place - j), (*places, place))
                found = max(found, longer, key=lambda one: one[:2])
            row.append(found)
        best = row
    return frozenset(best[-1][2])


def _units(text: str) -> list[str]:
    """Words and marks in lower case; each Chinese character by itself."""
    return _UNIT.findall(text.casefold())
