"""Sentence patterns of the pocket corpus with he, she and they, in the nominative, the accusative
and the dative.

English shows the gender here; a translator has to find who is meant, and in which case.
"""

from __future__ import annotations

from headwise.pocket.lexicon import Noun, adjectives, names, nouns_of, verbs_of
from headwise.pocket.noun_phrases import NamePhrase, NounPhrase, Possessed, Reference
from headwise.pocket.pattern import Slots, worded
from headwise.pocket.phrases import Quality, VerbPhrase
from headwise.pocket.random_draw import Draw
from headwise.pocket.word_choices import people, when


def gendered(kind: str) -> tuple[Noun, ...]:
    """Nouns for people whom English calls he (or she)."""
    return tuple(one for one in nouns_of("person") if kind in one.classes)


MEN, WOMEN = gendered("he"), gendered("she")


def somebody(draw: Draw, name: str, kind: str) -> NounPhrase | NamePhrase:
    """A man or a woman, by name or by role."""
    if draw.percent(40):
        return NamePhrase(name, draw.choose(names(kind)))
    return NounPhrase(name, draw.choose(MEN if kind == "he" else WOMEN))


def concept(phrase: NounPhrase | NamePhrase) -> str:
    """What a combination calls this person."""
    return phrase.noun.concept if isinstance(phrase, NounPhrase) else phrase.proper.en


def couple(draw: Draw) -> tuple[NounPhrase | NamePhrase, NounPhrase | NamePhrase]:
    """Two people of different gender."""
    kinds = draw.choose((("he", "she"), ("she", "he")))
    first, second = somebody(draw, "s", kinds[0]), somebody(draw, "o", kinds[1])
    draw.pair("couple", concept(first), concept(second))
    return first, second


def helped(draw: Draw) -> Slots:
    first, second = couple(draw)
    return {"s": first, "o": second, "r": Reference("r", first), "q": Reference("q", second)}


def visited(draw: Draw) -> Slots:
    return {**helped(draw), "t": when(draw, "recent")}


def alone(draw: Draw) -> Slots:
    who = somebody(draw, "s", draw.choose(("he", "she")))
    mood = draw.choose(
        [one for one in adjectives() if "mood" in one.kinds or one.concept == "tired"]
    )
    draw.pair("mood", mood.concept, concept(who))
    return {"s": who, "r": Reference("r", who), "a": Quality("a", mood), "t": when(draw, "recent")}


def absent(draw: Draw) -> Slots:
    who = somebody(draw, "s", draw.choose(("he", "she")))
    return {"s": who, "r": Reference("r", who), "t": when(draw, "recent")}


def before_bed(draw: Draw) -> Slots:
    kind = draw.choose(("he", "she"))
    verb = draw.choose(
        [
            one
            for one in verbs_of("act")
            if one.concept in ("read", "write", "eat", "wash", "feed", "repair", "watch")
        ]
    )
    who = somebody(draw, "s", kind)
    item = draw.choose(verb.objects)
    draw.pair("object", verb.concept, item.concept)
    return {
        "s": who,
        "r": Reference("r", who),
        "v": VerbPhrase("v", verb),
        "o": NounPhrase("o", item, draw.choose(("a", "the"))),
    }


def own(draw: Draw) -> Slots:
    """His or her thing: the possessive follows its owner, its ending follows the thing."""
    who = somebody(draw, "s", draw.choose(("he", "she")))
    verb = draw.choose(
        [
            one
            for one in verbs_of("once") + verbs_of("act")
            if one.concept in ("lose", "find", "lookfor", "sell", "wash", "repair")
        ]
    )
    item = draw.choose(verb.objects)
    draw.pair("object", verb.concept, item.concept)
    return {
        "s": who,
        "v": VerbPhrase("v", verb),
        "o": Possessed("o", item, who),
        "t": when(draw, "recent"),
    }


def group(draw: Draw) -> Slots:
    crowd = [one for one in people("person") if "single" not in one.classes]
    who = NounPhrase("s", draw.choose(crowd), "the", plural=True)
    mood = draw.choose(
        [one for one in adjectives() if one.concept in ("tired", "sad", "angry", "weak")]
    )
    draw.pair("mood", mood.concept, who.noun.concept)
    return {"s": who, "r": Reference("r", who), "a": Quality("a", mood), "t": when(draw, "recent")}


def gave(draw: Draw) -> Slots:
    first, second = couple(draw)
    item = draw.choose(nouns_of("gift fruit letter book magazine picked"))
    return {
        "s": first,
        "o": second,
        "r": Reference("r", first),
        "q": Reference("q", second),
        "w": NounPhrase("w", item, "a"),
        "t": when(draw, "recent"),
    }


PATTERNS = worded(
    "pronouns_for_people.txt",
    {
        "people-thanking": helped,
        "people-visiting": visited,
        "people-saying": alone,
        "people-staying-away": absent,
        "people-before-bed": before_bed,
        "people-own": own,
        "people-they": group,
        "people-meeting": gave,
    },
)
