"""Sentence patterns of the pocket corpus with an ambiguous word: bank, bat, seal; in German,
Schloss and Hahn.

The other words of the sentence decide its meaning, so a translator must attend to them.
"""

from __future__ import annotations

from headwise.pocket.lexicon import table_rows
from headwise.pocket.noun_phrases import NounPhrase
from headwise.pocket.pattern import Pattern, Slots, wording
from headwise.pocket.random_draw import Draw
from headwise.pocket.word_choices import people, person, when


def told(word: str) -> Pattern:
    """The pattern of one ambiguous word: its lines in the table, one per sentence."""
    lines = [fields[1:] for fields in table_rows("ambiguous.txt") if fields[0] == word]

    def draw_person(draw: Draw) -> Slots:
        subject = person(draw, "s", people("person kin"))
        if isinstance(subject, NounPhrase):
            draw.pair("ambiguous", word, subject.noun.concept)
        return {"s": subject, "t": when(draw, "recent")}

    return Pattern(f"ambiguous-{word}", 1, draw_person, tuple(wording(*line) for line in lines))


WORDS = tuple(dict.fromkeys(fields[0] for fields in table_rows("ambiguous.txt")))
PATTERNS = tuple(told(word) for word in WORDS)
