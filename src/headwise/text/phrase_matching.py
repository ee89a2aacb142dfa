"""Defines when a phrase occurs in a text, for required and forbidden phrases.

    the cat sleeps      contains "cat"
    the catalogue       does not: "cat" is not a whole word there
    我想喝茶。          contains "喝" and "茶": without spaces, every occurrence counts

A phrase occurs where its characters occur, exactly as typed, in a text whose white space (of any
kind and length) is replaced by single spaces. If the phrase begins with a word character, no word
character may precede it; if it ends with one, none may follow it. Letters, digits, marks and "_"
are word characters, except those of scripts without spaces. `decoding/rules/phrase_automaton.py`
finds the same occurrences while a text is being generated. Tested against hand-made examples.
"""

import unicodedata

from headwise.text.tokenizer import ESCAPE, WORD_START
from headwise.text.word_boundaries import is_unspaced

NOT_WATCHED = {
    WORD_START: ("which pieces write for a space", "词元用它表示空格"),
    ESCAPE: ("which pieces write before other characters", "词元用它作转义"),
    "\ufffd": ("which is shown for bytes that are no character", "它用来显示不成字符的字节"),
}
"""Characters whose position in a text does not follow from the tokens alone, and why."""

# A model with byte pieces may write any byte; a translation is one line that a terminal can be
# trusted with.
_CONTROL_TO_SPACE = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029], " ")


def on_one_line(text: str) -> str:
    """The text with spaces instead of control characters and line ends."""
    return text.translate(_CONTROL_TO_SPACE)


def is_space(character: str) -> bool:
    return ord(character) in _CONTROL_TO_SPACE or character.isspace()


def single_spaced(text: str) -> str:
    """The text with single spaces instead of all white space, none at its ends."""
    return " ".join(on_one_line(text).split())


def is_word_character(character: str) -> bool:
    """Whether a character can be part of a word in a script that writes spaces between words."""
    is_written = character == "_" or unicodedata.category(character)[0] in "LNM"
    return is_written and not is_unspaced(character)


def occurs(phrase: str, text: str, *, exactly: bool = False) -> bool:
    """Whether the phrase occurs in the text; `exactly`: with single spaces in the text itself."""
    phrase, text = single_spaced(phrase), text if exactly else single_spaced(text)
    place = text.find(phrase)
    while phrase and place >= 0:
        before, after = text[:place][-1:], text[place + len(phrase) :][:1]
        if not (_joins(before, phrase[0]) or _joins(phrase[-1], after)):
            return True
        place = text.find(phrase, place + 1)
    return False


def _joins(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to the same word."""
    return bool(left and right) and is_word_character(left) and is_word_character(right)
