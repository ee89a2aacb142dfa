"""Sentence patterns of the pocket corpus with "it", whose translation depends on a far word.

"It" could refer to two things, and the reason given decides (too tired: the animal; too wide: the
street). German then needs the gender of that noun.
"""

from __future__ import annotations

from headwise.pocket.lexicon import adjective, names, nouns_of
from headwise.pocket.noun_phrases import NamePhrase, NounPhrase, Reference
from headwise.pocket.pattern import Slots, worded
from headwise.pocket.phrases import Quality, TimePhrase, fixed
from headwise.pocket.pronoun_scenes import (
    BREAKING,
    CLIMBING,
    CROSSING,
    DRIVING,
    EATING,
    FITTING,
    HUNTING,
    LYING,
    PULLING,
    actor,
    called,
    mentioned,
    reason,
)
from headwise.pocket.random_draw import Draw
from headwise.pocket.sentence_patterns.places import PLACED, spot
from headwise.pocket.template import TemplateSlot
from headwise.pocket.word_choices import people, thing, when

FEED = {"cat": nouns_of("water milk meat fish"), "other": nouns_of("water bread")}
CARRYING = "suitcase bag box basket chest backpack table armchair"
CLOTHES_REASONS = "expensive expensive small big long@coat,dress,skirt,scarf short@dress,skirt ugly"
REASONS = (
    (
        "wash",
        "washing|V1",
        "洗|V1",
        "wäscht|V1",
        "washed",
        ("dirty|A1", "很|R2 脏|A1", "schmutzig|A1"),
    ),
    (
        "repair",
        "repairing|V1",
        "修理|V1",
        "repariert|V1",
        "repaired",
        ("broken|A1", "坏|A1 了|X2", "kaputt|A1"),
    ),
    (
        "read",
        "reading|V1",
        "看|V1",
        "liest|V1",
        "book magazine novel letter report newspaper",
        ("interesting|A1", "很|R2 有趣|A1", "interessant|A1"),
    ),
    (
        "read",
        "reading|V1",
        "看|V1",
        "liest|V1",
        "letter report contract",
        ("important|A1", "很|R2 重要|A1", "wichtig|A1"),
    ),
    ("pick", "picking|V1", "摘|V1", "pflückt|V1", "fruit", ("ripe|A1", "熟|A1 了|X2", "reif|A1")),
    (
        "pick",
        "picking|V1",
        "摘|V1",
        "pflückt|V1",
        "picked",
        ("beautiful|A1", "很|R2 漂亮|A1", "schön|A1"),
    ),
)


def crossing(draw: Draw) -> Slots:
    slots = CROSSING.slots(draw)
    crossed = slots["o"]
    assert isinstance(crossed, NounPhrase)
    over = "过" if crossed.noun.concept in ("road", "river", "bridge") else "穿过"
    return {**slots, "v": crossing_verb(over)}


def crossing_verb(over: str) -> TimePhrase:
    """过 a street, a river or a bridge; 穿过 a field or a square."""
    return fixed("v", "cross|V1", f"{over}|V1", "überquerte|V1")


def carrying(draw: Draw) -> Slots:
    """A person and a thing: he or it."""
    who = actor(draw, "s")
    what = mentioned(draw, "o", draw.choose(nouns_of(CARRYING)))
    draw.pair("antecedents", called(who), what.noun.concept)
    pair: dict[str, TemplateSlot] = {"s": who, "o": what, "t": when(draw, "recent")}
    if draw.percent(50):
        return {**pair, **reason(draw, "weak tired", who)}
    return {**pair, **reason(draw, "heavy big", what)}


def not_buying(draw: Draw) -> Slots:
    who = actor(draw, "s")
    what = mentioned(draw, "o", draw.choose(nouns_of("clothes")))
    what = NounPhrase(
        "o", what.noun, "the" if what.determiner == "my" else what.determiner, what.adjective
    )
    draw.pair("antecedents", called(who), what.noun.concept)
    return {"s": who, "o": what, **reason(draw, CLOTHES_REASONS, what), "t": when(draw, "recent")}


def giving_on(draw: Draw) -> Slots:
    """Buy something and give it to somebody: ihn, sie or es."""
    what = thing(draw, "o", draw.choose(nouns_of("gift clothes book")), ("a",))
    receiver = NounPhrase("w", draw.choose(people("person")))
    who = actor(draw)
    draw.pair("given", what.noun.concept, receiver.noun.concept)
    return {
        "p": who,
        "o": what,
        "w": receiver,
        "r": Reference("r", what),
        "t": when(draw, "recent"),
    }


def losing(draw: Draw) -> Slots:
    what = NounPhrase("o", draw.choose(nouns_of("lost")), draw.choose(("the", "a")))
    first = actor(draw, "s")
    other = NamePhrase("p", draw.choose(names("he") + names("she")))
    if isinstance(first, NamePhrase):
        first = NounPhrase("s", draw.choose(people("person")))
    draw.pair("object", "lose", what.noun.concept)
    return {"s": first, "p": other, "o": what, "r": Reference("r", what)}


def asking_where(draw: Draw) -> Slots:
    item = draw.choose(PLACED)
    what = thing(draw, "o", item, ("the", "my", "your"))
    lies = "steht|V1" if "stand" in item.classes else "liegt|V1"
    return {
        "o": what,
        "r": Reference("r", what),
        "l": spot(draw, item),
        "v": fixed("v", "is|V1", "x|V1", lies),
    }


def reason_for_acting(draw: Draw) -> Slots:
    """Washing it because it is dirty."""
    concept, en, zh, de, classes, why = draw.choose(REASONS)
    item = draw.choose(nouns_of(classes))
    draw.pair("object", concept, item.concept)
    what = NounPhrase("o", item, draw.choose(("the", "this", "the")))
    return {
        "p": actor(draw),
        "v": fixed("v", en, zh, de),
        "o": what,
        "r": Reference("r", what),
        "a": fixed("a", *why),
    }


def although(draw: Draw) -> Slots:
    what = NounPhrase(
        "o", draw.choose(nouns_of("clothes vehicle furniture device")), draw.choose(("the", "this"))
    )
    why = draw.choose(
        ("oldthing", "expensive", "ugly") if "clothes" in what.noun.classes else ("oldthing",)
    )
    who = actor(draw)
    draw.pair("adjective", why, what.noun.concept)
    return {"p": who, "o": what, "r": Reference("r", what), "a": Quality("a", adjective(why))}


def if_cheap(draw: Draw) -> Slots:
    what = NounPhrase("o", draw.choose(nouns_of("bought")), draw.choose(("the", "this")))
    why = draw.choose(("cheap", "cheap", "expensive"))
    draw.pair("adjective", why, what.noun.concept)
    negative = why == "expensive"
    words = ("won't", "不会", "nicht") if negative else ("will", "会", "")
    return {
        "p": actor(draw),
        "o": what,
        "r": Reference("r", what),
        "a": Quality("a", adjective(why)),
        "w": fixed(
            "w",
            "will|X1 n't|T2" if negative else "will|X1",
            "不|R2 会|X1" if negative else "会|X1",
            "wird|X1",
        ),
        "k": fixed("w", "", "", f"{words[2]}|T2" if negative else ""),
    }


def these(draw: Draw) -> Slots:
    """Plural things: them, sie, 它们."""
    item = draw.choose(nouns_of("food"))
    what = NounPhrase("o", item, "this", plural=True)
    why = draw.choose(("hard", "cold", "sour") if "fruit" in item.classes else ("hard", "cold"))
    draw.pair("object", "eat", item.concept)
    return {
        "p": actor(draw),
        "o": what,
        "r": Reference("r", what),
        "a": Quality("a", adjective(why)),
    }


def playing_with(draw: Draw) -> Slots:
    """The dative after mit: ihm or ihr."""
    pet = thing(draw, "o", draw.choose(nouns_of("pet")), ("a",))
    who = actor(draw)
    draw.pair("playing", "with", pet.noun.concept)
    return {"p": who, "o": pet, "r": Reference("r", pet), "t": when(draw, "habit")}


def feeding(draw: Draw) -> Slots:
    """The dative of the receiver: ihm or ihr."""
    pet = NounPhrase("o", draw.choose(nouns_of("pet farm")), draw.choose(("the", "this")))
    given = NounPhrase(
        "w", draw.choose(FEED["cat" if pet.noun.concept in ("dog", "cat") else "other"]), "bare"
    )
    draw.pair("feeding", pet.noun.concept, given.noun.concept)
    return {"p": actor(draw), "o": pet, "r": Reference("r", pet), "w": given}


def written_by(draw: Draw) -> Slots:
    what = NounPhrase(
        "o", draw.choose(nouns_of("letter postcard poem report")), draw.choose(("the", "this"))
    )
    writer = NamePhrase("p", draw.choose(names("he") + names("she")))
    why = draw.choose(("interesting", "boring", "long", "short"))
    draw.pair("adjective", why, what.noun.concept)
    return {
        "p": writer,
        "o": what,
        "r": Reference("r", what),
        "a": Quality("a", adjective(why)),
        "t": when(draw, "recent"),
    }


PATTERNS = worded(
    "pronouns_for_things.txt",
    {
        "it-crossing": crossing,
        "it-fitting": FITTING.slots,
        "it-lying": LYING.slots,
        "it-eating": EATING.slots,
        "it-pulling": PULLING.slots,
        "it-hunting": HUNTING.slots,
        "it-breaking": BREAKING.slots,
        "it-climbing": CLIMBING.slots,
        "it-driving": DRIVING.slots,
        "it-carrying": carrying,
        "it-not-buying": not_buying,
        "it-giving-on": giving_on,
        "it-found": losing,
        "it-where": asking_where,
        "it-reason": reason_for_acting,
        "it-although": although,
        "it-if": if_cheap,
        "them-eating": these,
        "it-playing-with": playing_with,
        "it-feeding": feeding,
        "it-written": written_by,
    },
)
