"""Draws words that go together: subjects and objects of verbs, adjectives of nouns, times, places.

Every choice that makes a combination also records it, so that some combinations can be held out of
training.
"""

from __future__ import annotations

from headwise.pocket.lexicon import (
    Noun,
    Verb,
    adjectives_for,
    names,
    nouns_of,
    places_of,
    times,
    verbs_of,
)
from headwise.pocket.noun_phrases import NamePhrase, NounPhrase, Speaker, Subject
from headwise.pocket.phrases import PlacePhrase, TimePhrase, VerbPhrase
from headwise.pocket.random_draw import Draw
from headwise.pocket.template import TemplateSlot

OBJECT_DETERMINERS = (
    ("a",) * 8 + ("the",) * 6 + ("this",) * 2 + ("my", "our", 2, 3, 4, 5, "some", "many")
)
OWNED = frozenset(
    [
        "portable",
        "lost",
        "clothes",
        "container",
        "vehicle",
        "device",
        "furniture",
        "pet",
        "instrument",
        "house",
        "bought",
        "gift",
    ]
)
PRONOUN_SUBJECTS = ("i", "we", "he", "she", "they")


def person(draw: Draw, name: str, nouns: tuple[Noun, ...], *, pronouns: bool = True) -> Subject:
    """Someone who acts: a name, a pronoun, my mother, the teacher, the young teacher, the
    teachers.
    """
    kind = draw.below(20)
    if kind < 3:
        return NamePhrase(name, draw.choose(names(draw.choose(("he", "she")))))
    if kind < 5 and pronouns:
        return Speaker(name, draw.choose(PRONOUN_SUBJECTS))
    noun = draw.choose(nouns)
    if "kin" in noun.classes:
        return NounPhrase(name, noun, draw.choose(("my", "my", "our", "your")))
    if kind < 7 and "single" not in noun.classes:
        return NounPhrase(name, noun, "the", plural=True)
    if kind < 9:
        return adjective_phrase(draw, name, noun, "the")
    return NounPhrase(name, noun, "this" if kind == 9 else "the")


def adjective_phrase(
    draw: Draw, name: str, noun: Noun, determiner: str | int, *, plural: bool = False
) -> NounPhrase:
    """A noun phrase with an adjective that fits, if there is one."""
    fitting = adjectives_for(noun, "attr")
    if not fitting:
        return NounPhrase(name, noun, determiner, plural=plural)
    adjective = draw.choose(fitting)
    draw.pair("adjective", adjective.concept, noun.concept)
    return NounPhrase(name, noun, determiner, adjective, plural=plural)


def thing(
    draw: Draw, name: str, noun: Noun, determiners: tuple[str | int, ...] = OBJECT_DETERMINERS
) -> NounPhrase:
    """An object with a determiner and sometimes an adjective."""
    if "kin" in noun.classes:
        return NounPhrase(name, noun, draw.choose(("my", "our", "your")))
    determiner = draw.choose(determiners)
    if determiner in ("my", "our", "your") and not noun.classes & OWNED:
        determiner = "the"
    if "single" in noun.classes and determiner not in ("the", "this"):
        determiner = "the"
    if determiner != "bare" and draw.percent(26):
        return adjective_phrase(draw, name, noun, determiner)
    return NounPhrase(name, noun, determiner)


def act(
    draw: Draw,
    kind: str,
    determiners: tuple[str | int, ...] = OBJECT_DETERMINERS,
    verb: Verb | None = None,
    *,
    pronouns: bool = True,
) -> dict[str, TemplateSlot]:
    """Subject s, verb v and object o that go together."""
    verb = verb or draw.choose(verbs_of(kind))
    subject = person(draw, "s", verb.subjects, pronouns=pronouns)
    avoid = subject.noun if isinstance(subject, NounPhrase) else None
    return {
        "s": subject,
        "v": VerbPhrase("v", verb, subject.agreement),
        "o": undergoer(draw, verb, determiners, avoid),
    }


def undergoer(
    draw: Draw,
    verb: Verb,
    determiners: tuple[str | int, ...] = OBJECT_DETERMINERS,
    avoid: Noun | None = None,
) -> NounPhrase:
    """An object o of the verb, other than its subject."""
    noun = draw.choose(verb.objects)
    if noun is avoid:
        noun = verb.objects[(verb.objects.index(noun) + 1) % len(verb.objects)]
    draw.pair("object", verb.concept, noun.concept)
    return thing(draw, "o", noun, determiners)


def move(draw: Draw, kind: str, *, pronouns: bool = True) -> dict[str, TemplateSlot]:
    """Subject s and a verb v without an object, in a place l where one does this."""
    verb = draw.choose(verbs_of(kind, transitive=False))
    subject = person(draw, "s", verb.subjects, pronouns=pronouns)
    place = where(draw, "l", verb)
    return {"s": subject, "v": VerbPhrase("v", verb, subject.agreement), "l": place}


def where(draw: Draw, name: str, verb: Verb) -> PlacePhrase:
    """A place where the verb makes sense."""
    kinds = sorted(kind[1:] for kind in verb.kinds if kind.startswith("@"))
    place = draw.choose(places_of(" ".join(kinds)))
    draw.pair("place", verb.concept, place.noun.concept)
    return PlacePhrase(name, place)


def when(draw: Draw, kind: str) -> TimePhrase:
    """A time t of a kind: past, future, habit, often."""
    return TimePhrase("t", draw.choose(times(kind)))


def when_past(draw: Draw, slots: dict[str, TemplateSlot]) -> TimePhrase:
    """A past time that suits the verb v: a house is built last year, a door is opened yesterday."""
    phrase = slots["v"]
    assert isinstance(phrase, VerbPhrase)
    kinds = phrase.verb.kinds
    return when(draw, "long" if "years" in kinds else "past" if "long" in kinds else "recent")


def when_future(draw: Draw, slots: dict[str, TemplateSlot]) -> TimePhrase:
    """A future time that suits the verb v."""
    phrase = slots["v"]
    assert isinstance(phrase, VerbPhrase)
    kinds = phrase.verb.kinds
    return when(draw, "later" if "years" in kinds else "future" if "long" in kinds else "soon")


def people(kind: str = "person") -> tuple[Noun, ...]:
    """The nouns for people of a kind."""
    return nouns_of(kind)
