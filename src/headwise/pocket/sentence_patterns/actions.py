"""Sentence patterns of the pocket corpus about actions: past, in progress, habitual, future and
perfect.

Time and place stand last in English, before the verb in Chinese, and in the middle in German.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwise.pocket.lexicon import Noun, names, noun, nouns_of, places_of, verb, verbs_of
from headwise.pocket.noun_phrases import NamePhrase, NounPhrase
from headwise.pocket.pattern import Slots, worded
from headwise.pocket.phrases import PlacePhrase, VerbPhrase
from headwise.pocket.random_draw import Draw
from headwise.pocket.template import TemplateSlot
from headwise.pocket.word_choices import (
    act,
    move,
    people,
    person,
    thing,
    when,
    when_future,
    when_past,
)

SHOPS = {
    "bakery": "baked",
    "supermarket": "food dishes",
    "market": "fruit vegetable picked clothes basket",
}
STATES = tuple(verb(concept) for concept in ("like", "know", "need", "love"))
EXPERIENCES = tuple(
    verb(concept)
    for concept in [
        "read",
        "watch",
        "seeanimal",
        "meet",
        "visit",
        "invite",
        "wash",
        "repair",
        "feed",
        "photograph",
        "paint",
        "open",
        "translate",
    ]
)
DEFINITE: tuple[str | int, ...] = ("the", "the", "this", "my")


def past(draw: Draw) -> Slots:
    slots = act(draw, draw.choose(("act", "once")))
    return {**slots, "t": when_past(draw, slots)}


def past_somewhere(draw: Draw) -> Slots:
    """Bread from the bakery, fruit from the market."""
    place = draw.choose(places_of("shopping"))
    item = draw.choose(nouns_of(SHOPS[place.noun.concept]))
    subject = person(draw, "s", people("person kin"))
    draw.pair("object", "buy", item.concept)
    return {
        "s": subject,
        "v": VerbPhrase("v", verb("buy"), subject.agreement),
        "o": thing(draw, "o", item, ("a", "a", "the", 2, 3, 4, 5, 6, "some", "many")),
        "l": PlacePhrase("l", place),
        "t": when(draw, "recent"),
    }


def progressive(draw: Draw) -> Slots:
    return act(draw, draw.choose(("act", "act", "act", "act", "now")))


def habit(draw: Draw) -> Slots:
    """Every day a new letter, but the same dog."""
    chosen = draw.choose(verbs_of("habit"))
    determiners = (
        ("a",)
        if chosen.concept in ("eat", "bake", "read", "write")
        else ("the", "the", "this", "my")
    )
    return {**act(draw, "habit", determiners, chosen), "t": when(draw, "habit")}


def frequency(draw: Draw) -> Slots:
    """Often, always, sometimes: things of a kind, in the plural."""
    slots = act(draw, "habit", ("bare",))
    found = slots["o"]
    assert isinstance(found, NounPhrase)
    return {
        **slots,
        "o": NounPhrase("o", found.noun, "bare", plural=True),
        "t": when(draw, "often"),
    }


def future(draw: Draw) -> Slots:
    slots = act(draw, "plan")
    return {**slots, "t": when_future(draw, slots)}


def definite(draw: Draw) -> Slots:
    return act(draw, draw.choose(("act", "once")), DEFINITE)


def never(draw: Draw) -> Slots:
    return act(draw, "once", DEFINITE, draw.choose(EXPERIENCES))


def definite_past(draw: Draw) -> Slots:
    slots = act(draw, draw.choose(("act", "once")), DEFINITE)
    return {**slots, "t": when_past(draw, slots)}


def no_object(draw: Draw) -> Slots:
    chosen = draw.choose(("buy", "find", "write", "sell", "paint", "plant", "read"))
    slots = act(draw, "once", ("bare",), verb(chosen))
    found = slots["o"]
    assert isinstance(found, NounPhrase)
    return {**slots, "o": NounPhrase("o", found.noun, "no", plural=True), "t": when(draw, "past")}


def mass(draw: Draw) -> Slots:
    """Bread and water: nouns without article or plural."""
    subject = person(draw, "s", people("person kin"))
    drinking = draw.percent(50)
    chosen = draw.choose(nouns_of("drink" if drinking else "massfood"))
    eaten = verb("drink" if drinking else "eat")
    draw.pair("object", eaten.concept, chosen.concept)
    return {
        "s": subject,
        "v": VerbPhrase("v", eaten, subject.agreement),
        "o": NounPhrase("o", chosen, "bare"),
        "k": NounPhrase("o", chosen, "no"),
        "t": when(draw, "habit"),
    }


def mass_negative(draw: Draw) -> Slots:
    return {**mass(draw), "t": when(draw, "part")}


def without_object(draw: Draw) -> Slots:
    return move(draw, "act")


def without_object_past(draw: Draw) -> Slots:
    return {**move(draw, "act"), "t": when(draw, "recent")}


def without_object_habit(draw: Draw) -> Slots:
    return {**move(draw, "habit"), "t": when(draw, "habit")}


def liking(draw: Draw) -> Slots:
    """Preferences need no time: likes, knows, loves, needs."""
    chosen = draw.choose(STATES)
    return act(
        draw,
        "state",
        ("a", "the", "this") if chosen.concept == "need" else ("the", "this", "my"),
        chosen,
    )


def liking_definite(draw: Draw) -> Slots:
    return act(draw, "state", ("the", "this", "my"), draw.choose(STATES))


def _others(people_there: Sequence[Noun], subject: TemplateSlot) -> list[Noun]:
    """Everybody but the one who acts: nobody gives a thing to himself."""
    return [
        one for one in people_there if not (isinstance(subject, NounPhrase) and one is subject.noun)
    ]


def giving(draw: Draw, kinds: str = "gift readable fruit toy", time: str = "recent") -> Slots:
    subject = person(draw, "s", people("person kin"))
    receiver = thing(
        draw, "r", draw.choose(_others(people("person"), subject)), ("the", "the", "this", "a")
    )
    given = draw.choose(nouns_of(kinds))
    draw.pair("given", given.concept, receiver.noun.concept)
    return {"s": subject, "r": receiver, "o": thing(draw, "o", given), "t": when(draw, time)}


def showing(draw: Draw) -> Slots:
    return giving(draw, "shown readable gift clothes")


def giving_future(draw: Draw) -> Slots:
    return giving(draw, "gift readable toy", "soon")


def selling_future(draw: Draw) -> Slots:
    return giving(draw, "vehicle instrument device furniture", "future")


def dative(draw: Draw) -> Slots:
    subject = person(draw, "s", people("person kin"))
    receiver = thing(
        draw, "r", draw.choose(_others(people("person kin"), subject)), ("the", "the", "this", "a")
    )
    if isinstance(subject, NounPhrase):
        draw.pair("helping", subject.noun.concept, receiver.noun.concept)
    return {"s": subject, "r": receiver, "t": when(draw, "recent")}


def coordinated(draw: Draw) -> Slots:
    slots = act(draw, "once", ("a", "the", 2, 3), verb("buy"))
    first = slots["o"]
    assert isinstance(first, NounPhrase)
    others = [one for one in nouns_of("bought food") if one is not first.noun]
    return {
        **slots,
        "p": thing(draw, "p", draw.choose(others), ("a", "the", 2, 3)),
        "t": when(draw, "past"),
    }


def together(draw: Draw) -> Slots:
    slots = move(draw, "act", pronouns=False)
    phrase = slots["v"]
    assert isinstance(phrase, VerbPhrase)
    first = slots["s"]
    if isinstance(first, NounPhrase) and "pet" in first.noun.classes:
        slots["s"] = NounPhrase("s", noun("boy"))
    elif isinstance(first, NounPhrase) and first.plural:
        slots["s"] = NounPhrase("s", first.noun)
    used = first.proper.en if isinstance(first, NamePhrase) else ""
    second = draw.choose([one for one in names("he") + names("she") if one.en != used])
    return {**slots, "p": NamePhrase("p", second), "v": VerbPhrase("v", phrase.verb, 1)}


def passive(draw: Draw) -> Slots:
    """The thing first, the doer later: von plus dative, and Chinese 是 … 的."""
    chosen = verb(
        draw.choose(
            ("write", "build", "repair", "paint", "buy", "find", "translate", "bake", "plant")
        )
    )
    thing_noun = draw.choose(chosen.objects)
    subjects = [one for one in chosen.subjects if "person" in one.classes]
    doer = NounPhrase("s", draw.choose(subjects), "the")
    draw.pair("object", chosen.concept, thing_noun.concept)
    return {
        "s": doer,
        "v": VerbPhrase("v", chosen),
        "o": thing(draw, "o", thing_noun, ("the", "this")),
    }


PATTERNS = worded(
    "actions.txt",
    {
        "past": past,
        "past-time-first": past,
        "past-somewhere": past_somewhere,
        "progressive": progressive,
        "habit": habit,
        "frequency": frequency,
        "future": future,
        "future-time-first": future,
        "already": definite,
        "not-yet": definite,
        "never": never,
        "did-not": definite_past,
        "did-no": no_object,
        "mass": mass,
        "mass-negative": mass_negative,
        "somewhere-now": without_object,
        "somewhere-past": without_object_past,
        "somewhere-habit": without_object_habit,
        "liking": liking,
        "not-liking": liking_definite,
        "giving": giving,
        "showing": showing,
        "giving-future": giving_future,
        "selling-future": selling_future,
        "dative-verbs": dative,
        "two-things": coordinated,
        "two-people": together,
        "passive": passive,
    },
)
