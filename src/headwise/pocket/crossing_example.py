"""Builds the example sentences in which "it" refers to an animal or to a street, with the German
pronoun that shows which.

"The animal didn't cross the street because it was too tired" and "… too wide" differ in one word.
"""

from __future__ import annotations

from headwise.pocket.lexicon import adjective, noun
from headwise.pocket.noun_phrases import NounPhrase, Reference
from headwise.pocket.phrases import Quality
from headwise.pocket.sentence import Sentence, capitalise
from headwise.pocket.sentence_patterns.pronouns_for_things import crossing_verb
from headwise.pocket.sentence_patterns.table import patterns
from headwise.pocket.template import TemplateSlot, render


def crossing_example(reason: str, meant: str) -> Sentence:
    """The sentence with a reason that points to the animal (``s``) or to the street (``o``)."""
    animal, street = NounPhrase("s", noun("animal")), NounPhrase("o", noun("road"))
    slots: dict[str, TemplateSlot] = {
        "s": animal,
        "o": street,
        "v": crossing_verb("过"),
        "a": Quality("a", adjective(reason)),
        "r": Reference("r", animal if meant == "s" else street),
    }
    pattern = next(one for one in patterns() if one.name == "it-crossing")
    wording = pattern.wordings[0]
    return Sentence(
        pattern.name,
        (("antecedents:animal", "road"),),
        capitalise(render(wording.en, "en", slots)),
        tuple(render(wording.zh, "zh", slots)),
        capitalise(render(wording.de, "de", slots)),
    )


NOTES_EXAMPLES = (crossing_example("tired", "s"), crossing_example("wide", "o"))
"""… because it was too tired (es, the animal) and … because it was too wide (sie, the street)."""
