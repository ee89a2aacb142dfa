"""Renders a template: the wording of a sentence pattern in one language, with slots for phrases.

Fixed words have a tag letter and a link number; words of two languages with the same link are
aligned.

Notation, separated by blanks::

    {s:n}                  the phrase in slot s, in form n (a German case, a verb form, ...)
    <s:is/are/am|X1>       a word that agrees with slot s: third singular / plural / I / you
    bank|N3                a fixed word: letter N = NOUN, link 3 (several links: |N3,4)
    , . ? ! ， 。 ？ ！     punctuation needs no letter
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

TAG_LETTERS = {
    "N": "NOUN",
    "V": "VERB",
    "A": "ADJ",
    "D": "DET",
    "P": "ADP",
    "R": "ADV",
    "X": "AUX",
    "M": "NUM",
    "T": "PART",
    "C": "CCONJ",
    "S": "SCONJ",
    "O": "PRON",
    "E": "PROPN",
}
PUNCTUATION = frozenset(",.?!:;，。？！：；„“”")


class Token(NamedTuple):
    """One word with its tag and its links (blank-separated names of what it means)."""

    word: str
    tag: str
    links: str


class TemplateSlot(Protocol):
    """Anything that can stand in a hole: it renders itself in each language."""

    agreement: int

    def en(self, form: str) -> list[Token]: ...

    def zh(self, form: str) -> list[Token]: ...

    def de(self, form: str) -> list[Token]: ...


class Hole(NamedTuple):
    slot: str
    form: str


class Agreeing(NamedTuple):
    slot: str
    choices: tuple[Token, Token, Token, Token]


TemplatePart = Token | Hole | Agreeing


def parse_word(text: str) -> Token:
    """Read ``bank|N3`` or a punctuation mark."""
    if text in PUNCTUATION:
        return Token(text, "PUNCT", text)
    word, _, mark = text.rpartition("|")
    if not word or mark[0] not in TAG_LETTERS:
        raise ValueError(
            f"template word {text!r} has no tag; a word is written like bank|N3; add a letter and "
            "a link"
        )
    return Token(word, TAG_LETTERS[mark[0]], mark[1:].replace(",", " "))


def parse(text: str) -> tuple[TemplatePart, ...]:
    """Read a whole template line."""
    parts: list[TemplatePart] = []
    for piece in text.split():
        if piece.startswith("{"):
            slot, _, form = piece.strip("{}").partition(":")
            parts.append(Hole(slot, form))
        elif piece.startswith("<"):
            slot, _, rest = piece.strip("<>").partition(":")
            words, _, mark = rest.rpartition("|")
            forms = words.split("/")
            third, plural = forms[0], forms[1]
            first = forms[2] if len(forms) > 2 else third
            second = forms[3] if len(forms) > 3 else plural
            tokens = [parse_word(f"{word}|{mark}") for word in (third, plural, first, second)]
            parts.append(Agreeing(slot, (tokens[0], tokens[1], tokens[2], tokens[3])))
        else:
            parts.append(parse_word(piece))
    return tuple(parts)


def parse_words(text: str) -> tuple[Token, ...]:
    """Read a line of fixed words without holes."""
    return tuple(parse_word(piece) for piece in text.split())


def render(
    parts: tuple[TemplatePart, ...], language: str, slots: Mapping[str, TemplateSlot]
) -> list[Token]:
    """Fill the holes of a parsed template."""
    tokens: list[Token] = []
    for part in parts:
        if type(part) is Token:
            tokens.append(part)
        elif type(part) is Hole:
            tokens.extend(getattr(slots[part.slot], language)(part.form))
        else:
            assert type(part) is Agreeing
            tokens.append(part.choices[slots[part.slot].agreement])
    return tokens
