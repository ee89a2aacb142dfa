"""Patterns of descriptive sentences: predicates, comparison, possession, relative clauses.

The pocket corpus, the small parallel corpus built into the program, is generated from such
patterns in English, German and Chinese. A German adjective agrees with a noun that follows it and
has no ending after the verb. In Chinese every modifier stands before its noun.
"""

from __future__ import annotations

from headwise.pocket.german import WEAK_ENDING
from headwise.pocket.lexicon import (
    Adjective,
    Noun,
    adjectives,
    adjectives_for,
    names,
    nouns,
    nouns_of,
    verb,
    verbs_of,
)
from headwise.pocket.noun_phrases import NamePhrase, NounPhrase, RelativeClause
from headwise.pocket.pattern import Slots, worded
from headwise.pocket.phrases import Quality, VerbPhrase
from headwise.pocket.random_draw import Draw
from headwise.pocket.template import Token
from headwise.pocket.word_choices import OWNED, act, adjective_phrase, people, person, undergoer


def describable(kind: str) -> tuple[Noun, ...]:
    """The nouns that some adjective of a kind fits."""
    return tuple(
        one
        for one in nouns()
        if adjectives_for(one, kind) and not one.mass and "kin" not in one.classes
    )


PREDICATED = describable("pred")
COMPARED = describable("compared")
COLOURED = tuple(one for one in nouns() if adjectives_for(one, "colour"))
ATTRIBUTED = describable("attr")
EXCESSIVE = tuple(
    one
    for one in adjectives()
    if one.concept
    in [
        "expensive",
        "big",
        "small",
        "long",
        "short",
        "heavy",
        "high",
        "difficult",
        "dangerous",
        "slow",
        "dirty",
        "oldthing",
        "boring",
    ]
)
EXCEEDING = tuple(item for item in PREDICATED if any(one.fits & item.classes for one in EXCESSIVE))


def predicate(draw: Draw) -> Slots:
    item = draw.choose(PREDICATED)
    return described(draw, item, adjectives_for(item, "pred"))


def excessive(draw: Draw) -> Slots:
    """Too expensive, too small: only qualities of which there can be too much."""
    item = draw.choose(EXCEEDING)
    return described(draw, item, tuple(one for one in EXCESSIVE if one.fits & item.classes))


def described(draw: Draw, item: Noun, qualities: tuple[Adjective, ...]) -> Slots:
    """A thing s and one of the qualities as its predicate a."""
    quality = draw.choose(qualities)
    draw.pair("adjective", quality.concept, item.concept)
    determiner = draw.choose(("the", "this", "my") if item.classes & OWNED else ("the", "this"))
    phrase = NounPhrase("s", item, determiner, plural=determiner != "my" and draw.percent(30))
    return {"s": phrase, "a": Quality("a", quality)}


def colour(draw: Draw) -> Slots:
    item = draw.choose(COLOURED)
    quality = draw.choose(adjectives_for(item, "colour"))
    draw.pair("adjective", quality.concept, item.concept)
    return {
        "s": NounPhrase("s", item, draw.choose(("the", "this", "my", "your"))),
        "a": Quality("a", quality),
    }


def mood(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    quality = draw.choose(
        [one for one in adjectives() if "mood" in one.kinds or one.concept == "tired"]
    )
    if isinstance(subject, NounPhrase):
        draw.pair("mood", quality.concept, subject.noun.concept)
    return {"s": subject, "a": Quality("a", quality)}


MEASURED = ("big", "small", "heavy", "light", "fast", "slow", "long", "short")
"""Qualities with a true order between kinds of things; they compare my dog with your dog."""


def compared(draw: Draw) -> Slots:
    first = draw.choose(COMPARED)
    quality = draw.choose(adjectives_for(first, "compared"))
    if quality.concept in MEASURED and first.classes & OWNED:
        draw.pair("adjective", quality.concept, first.concept)
        return {
            "s": NounPhrase("s", first, "my"),
            "p": NounPhrase("p", first, "your"),
            "a": Quality("a", quality),
        }
    kind = frozenset(("person",)) if "person" in first.classes else quality.fits & first.classes
    others = [
        one
        for one in COMPARED
        if one.classes & quality.fits and one.classes & kind and one is not first
    ]
    if not others:
        return compared(draw)
    second = draw.choose(others)
    draw.pair("adjective", quality.concept, first.concept)
    draw.pair("adjective", quality.concept, second.concept)
    return {
        "s": NounPhrase("s", first, draw.choose(("the", "this"))),
        "p": NounPhrase("p", second),
        "a": Quality("a", quality),
    }


def named(draw: Draw) -> Slots:
    first = draw.choose(names("he") + names("she"))
    second = draw.choose([one for one in names("he") + names("she") if one is not first])
    quality = draw.choose(
        [
            one
            for one in adjectives()
            if one.concept in ("tall", "clever", "friendly", "rich", "hardworking", "lazy")
        ]
    )
    draw.pair("named", first.en, second.en)
    return {"s": NamePhrase("s", first), "p": NamePhrase("p", second), "a": Quality("a", quality)}


def superlative(draw: Draw) -> Slots:
    item = draw.choose(COMPARED)
    quality = draw.choose(adjectives_for(item, "compared"))
    draw.pair("adjective", quality.concept, item.concept)
    return {
        "o": NounPhrase("o", item),
        "a": Quality("o.a", quality),
        "e": Superlative(item, quality.de_superlative),
    }


class Superlative(NounPhrase):
    """The German superlative between article and noun: der älteste Turm."""

    __slots__ = ("superlative",)

    def __init__(self, noun: Noun, superlative: str) -> None:
        super().__init__("o", noun)
        self.superlative = superlative

    def de(self, form: str) -> list[Token]:
        article, word = super().de(form)
        ending = WEAK_ENDING[self.noun.gender][form[0]]
        return [article, Token(self.superlative + ending, "ADJ", "o.a"), word]


def presented(draw: Draw) -> Slots:
    item = draw.choose(ATTRIBUTED)
    return {
        "o": adjective_phrase(
            draw, "o", item, draw.choose(("a", "my", "our")) if item.classes & OWNED else "a"
        )
    }


def having(draw: Draw) -> Slots:
    return act(draw, "state", ("a", "a", 2, 3, 4, "many"), verb("have"))


def not_having(draw: Draw) -> Slots:
    slots = act(draw, "state", ("bare",), verb("have"))
    item = slots["o"]
    assert isinstance(item, NounPhrase)
    return {**slots, "o": NounPhrase("o", item.noun, "no"), "e": NounPhrase("o", item.noun, "a")}


def owned(draw: Draw) -> Slots:
    owner = NounPhrase("w", draw.choose(nouns_of("person")), "the")
    item = draw.choose(
        [
            one
            for one in PREDICATED
            if one.classes
            & {"clothes", "vehicle", "pet", "device", "container", "house", "instrument"}
        ]
    )
    quality = draw.choose(adjectives_for(item, "pred"))
    draw.pair("adjective", quality.concept, item.concept)
    draw.pair("owned", owner.noun.concept, item.concept)
    return {"w": owner, "o": NounPhrase("o", item), "a": Quality("a", quality)}


def bought_thing(draw: Draw) -> Slots:
    """The thing somebody bought is ...: the clause follows the noun except in Chinese."""
    chosen = verb(
        draw.choose(
            (
                "buy",
                "read",
                "write",
                "repair",
                "paint",
                "sell",
                "find",
                "lose",
                "pick",
                "wash",
                "bake",
            )
        )
    )
    items = [one for one in chosen.objects if one in PREDICATED]
    item = draw.choose(items)
    quality = draw.choose(adjectives_for(item, "pred"))
    doer = person(draw, "s", chosen.subjects)
    phrase = NounPhrase("o", item)
    draw.pair("object", chosen.concept, item.concept)
    draw.pair("adjective", quality.concept, item.concept)
    return {
        "o": phrase,
        "r": RelativeClause("r", phrase),
        "s": doer,
        "v": VerbPhrase("v", chosen, doer.agreement),
        "a": Quality("a", quality),
    }


def doer(draw: Draw) -> Slots:
    """The person who did something is ..."""
    chosen = draw.choose(verbs_of(draw.choose(("act", "once"))))
    subjects = [
        one for one in chosen.subjects if adjectives_for(one, "pred") and "person" in one.classes
    ]
    subject = NounPhrase("s", draw.choose(subjects))
    quality = draw.choose(adjectives_for(subject.noun, "pred"))
    draw.pair("adjective", quality.concept, subject.noun.concept)
    return {
        "s": subject,
        "r": RelativeClause("r", subject),
        "v": VerbPhrase("v", chosen),
        "o": undergoer(draw, chosen, ("the", "a", 2, 3), subject.noun),
        "a": Quality("a", quality),
    }


def job(draw: Draw) -> Slots:
    subject = draw.choose(names("he"))
    item = draw.choose(
        [
            one
            for one in nouns_of("adult")
            if "he" in one.classes and one.zh_bare and "single" not in one.classes
        ]
    )
    woman = draw.percent(30)
    if woman:
        subject = draw.choose(names("she"))
        item = draw.choose(
            [
                one
                for one in nouns_of("adult")
                if "she" in one.classes and one.zh_bare and "single" not in one.classes
            ]
        )
    draw.pair("job", subject.en, item.concept)
    return {"s": NamePhrase("s", subject), "o": NounPhrase("o", item, "a")}


PATTERNS = worded(
    "descriptions.txt",
    {
        "predicate": predicate,
        "too": excessive,
        "colour": colour,
        "mood": mood,
        "comparative": compared,
        "comparative-names": named,
        "superlative": superlative,
        "this-is": presented,
        "has": having,
        "has-no": not_having,
        "possessor": owned,
        "relative-object": bought_thing,
        "relative-subject": doer,
        "job": job,
    },
)
