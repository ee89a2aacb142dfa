"""Tables of what "it" may refer to in sentences of the pocket corpus: pairs of nouns, and reasons
that decide between the two.

The patterns of `sentence_patterns/pronouns_for_things.py` draw from these tables: the animal did
not cross the street because it was too tired (the animal) or too wide (the street). The two nouns
always differ in German gender, so the pronoun of a translation shows which one was understood.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwise.pocket.lexicon import Noun, adjective, adjectives_for, names, nouns_of
from headwise.pocket.noun_phrases import NamePhrase, NounPhrase, Reference
from headwise.pocket.phrases import Quality
from headwise.pocket.random_draw import Draw
from headwise.pocket.template import TemplateSlot
from headwise.pocket.word_choices import OWNED, people, when


@dataclass(frozen=True)
class PronounScene:
    """Two groups of nouns, and the reasons that point to the first or to the second.
    A reason may name the only concept it fits, as in ``deep@river``."""

    first: str
    second: str
    first_reasons: str
    second_reasons: str

    def slots(self, draw: Draw) -> dict[str, TemplateSlot]:
        """Draw both things with different German genders, a reason, and the pronoun that it
        decides.
        """
        one = draw.choose(nouns_of(self.first))
        other = draw.choose([item for item in nouns_of(self.second) if item.gender != one.gender])
        draw.pair("antecedents", one.concept, other.concept)
        first, second = mentioned(draw, "s", one), mentioned(draw, "o", other)
        pair: dict[str, TemplateSlot] = {"s": first, "o": second, "t": when(draw, "recent")}
        if draw.percent(50):
            return {**pair, **reason(draw, self.first_reasons, first)}
        return {**pair, **reason(draw, self.second_reasons, second)}


def mentioned(draw: Draw, name: str, item: Noun) -> NounPhrase:
    """The thing as it is first mentioned: the dog, this dog, the black dog, my dog."""
    determiner = draw.choose(
        ("the", "the", "the", "the", "this", "my" if item.classes & OWNED else "the")
    )
    colours = adjectives_for(item, "colour")
    if colours and draw.percent(20):
        colour = draw.choose(colours)
        draw.pair("adjective", colour.concept, item.concept)
        return NounPhrase(name, item, determiner, colour)
    return NounPhrase(name, item, determiner)


def reason(draw: Draw, reasons: str, meant: NounPhrase | NamePhrase) -> dict[str, TemplateSlot]:
    """A reason a and the pronoun r it points with."""
    fitting = []
    for item in reasons.split():
        concept, _, only = item.partition("@")
        if not only or called(meant) in only.split(","):
            fitting.append(concept)
    return {"a": Quality("a", adjective(draw.choose(fitting))), "r": Reference("r", meant)}


def actor(draw: Draw, name: str = "p") -> NounPhrase | NamePhrase:
    """A third person singular: a name, a man or a woman."""
    if draw.percent(35):
        return NamePhrase(name, draw.choose(names("he") + names("she")))
    return NounPhrase(
        name, draw.choose([one for one in people("person") if one.classes & {"he", "she"}])
    )


def called(phrase: NounPhrase | NamePhrase) -> str:
    """What a combination calls this person."""
    return phrase.noun.concept if isinstance(phrase, NounPhrase) else phrase.proper.en


CROSSING = PronounScene(
    "walker",
    "crossed",
    "tired tired weak slow afraid oldliving",
    "wide wide dangerous@road,river,motorway,bridge deep@river narrow@bridge",
)
FITTING = PronounScene(
    "big",
    "container",
    "big wide@trophy,vase,ball,drum,violin,doll long@umbrella,violin",
    "small narrow full",
)
LYING = PronounScene("climber", "soft", "tired weak lazy", "soft warm")
EATING = PronounScene(
    "pet farm monkey bear animal",
    "fruit vegetable sausage egg biscuit",
    "tired weak afraid",
    "hard sour@lemon,apple,pear,peach,tomato hot@egg,sausage,potato",
)
PULLING = PronounScene("strong", "pulled car stone", "weak tired oldliving small", "heavy big")
HUNTING = PronounScene("hunting cat dog", "prey", "fast clever strong", "slow weak tired")
BREAKING = PronounScene(
    "stone ball hammer",
    "window mirror vase",
    "heavy hard@stone,hammer",
    "thin oldthing@window,mirror",
)
CLIMBING = PronounScene("pet goat fox monkey", "climbed", "small tired weak", "high steep@wall")
DRIVING = PronounScene("tallvehicle", "bridge", "high big", "low")
