"""Phrases as one automaton over text: it reads the symbols of a text one by one and says where a phrase is complete.

A state holds, for every phrase, how many of its bytes the end of the text matches (as Knuth, Morris & Pratt 1977 and
Aho & Corasick 1975 do), and of what kind the last character was. What counts as an occurrence is `text/occurrence.py`:
a phrase that begins with a word character is not begun after another one, and a phrase that ends with one is complete
only when something else follows, or nothing:

    "cat" in   c → a → t → "alogue"     dropped: a longer word
                       t → " ", "." …   complete
                       t → the end      complete

A space in a required phrase is one space. In a forbidden phrase it is white space of any kind and length, also where byte
pieces spell it: two spaces do not save it. The kind of a character that byte pieces spell is not known: it never makes a
required phrase complete and never saves a forbidden one.
Tested against `occurs` on random texts, cut into pieces and bytes at random.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwise.text.occurrence import is_space, is_word_character, single_spaced
from headwise.text.spelling import NO_WORD, NOT_KNOWN, NUM_SYMBOLS, SPACE, WORD

LONG_SPACES = frozenset(chr(code).encode() for code in range(0x80, 0x3001) if is_space(chr(code)))
"""White space of several bytes; what has one byte is the symbol of a space."""
SPACES = LONG_SPACES | {bytes([SPACE])}
SPACE_BEGINNINGS = frozenset(space[:length] for space in LONG_SPACES for length in range(1, len(space)))
SPACE_BYTES = frozenset(byte for space in SPACES for byte in space)

Item = tuple[int, int, bytes]
"""Number of the phrase, how many of its bytes were read, and what was read of a space of several bytes."""


@dataclass(frozen=True)
class Phrase:
    """One phrase to look for; `bit` is what it is reported as."""

    content: bytes
    bit: int
    is_required: bool
    begins_word: bool
    ends_word: bool

    @staticmethod
    def of(text: str, *, bit: int, is_required: bool) -> "Phrase":
        text = single_spaced(text)
        return Phrase(text.encode(), bit, is_required, is_word_character(text[0]), is_word_character(text[-1]))

    def is_inside_word(self, kind: int) -> bool:
        return kind == WORD or (kind == NOT_KNOWN and self.is_required)


@dataclass(frozen=True)
class PhraseAutomaton:
    """State 0 is the beginning of a text."""

    moves: NDArray[np.int32]
    """[state, symbol]: the next state."""
    found: NDArray[np.int32]
    """[state, symbol]: bits of the phrases that this symbol shows to be complete."""
    at_end: NDArray[np.int32]
    """[state]: bits of the phrases that are complete if the text ends here."""


@dataclass(frozen=True)
class _State:
    kind: int
    items: frozenset[Item]


Beginnings = dict[int, list[tuple[int, Phrase]]]
"""Phrases with their numbers, by their first byte."""


def build_automaton(phrases: Sequence[Phrase], *, max_states: int) -> PhraseAutomaton | None:
    """Of all phrases together; None if that takes more than `max_states` states."""
    numbers = {_State(NO_WORD, frozenset()): 0}
    moves: list[NDArray[np.int32]] = []
    found: list[NDArray[np.int32]] = []
    waiting = list(numbers)
    beginnings: Beginnings = {}
    for number, phrase in enumerate(phrases):
        beginnings.setdefault(phrase.content[0], []).append((number, phrase))
    for state in waiting:
        moves.append(np.empty(NUM_SYMBOLS, dtype=np.int32))
        found.append(np.empty(NUM_SYMBOLS, dtype=np.int32))
        watched = _watched_bytes(state, phrases) | set(beginnings)
        for kind in (NO_WORD, WORD, NOT_KNOWN):
            for byte in (-1, *watched):
                where = (
                    slice(256 * kind, 256 * (kind + 1)) if byte < 0 else slice(byte + 256 * kind, byte + 256 * kind + 1)
                )
                after, bits = _read(state, byte, kind, phrases, beginnings)
                if after not in numbers:
                    numbers[after] = len(numbers)
                    waiting.append(after)
                moves[-1][where], found[-1][where] = numbers[after], bits
        if len(numbers) > max_states:
            return None
    at_end = [
        sum({phrases[i].bit for i, place, _ in state.items if place == len(phrases[i].content)}) for state in numbers
    ]
    return PhraseAutomaton(np.stack(moves), np.stack(found), np.array(at_end, dtype=np.int32))


def _watched_bytes(state: _State, phrases: Sequence[Phrase]) -> set[int]:
    """Bytes that this state does not treat like all others."""
    watched = {SPACE}
    for number, place, _ in state.items:
        content = phrases[number].content
        watched |= set(content[place : place + 1])
        if SPACE in content[max(0, place - 1) : place + 1]:
            watched |= SPACE_BYTES
    return watched


def _read(state: _State, byte: int, kind: int, phrases: Sequence[Phrase], beginnings: Beginnings) -> tuple[_State, int]:
    """The state after one symbol, and the bits of the phrases it completes."""
    items: set[Item] = set()
    bits = 0
    is_other_space = byte == SPACE and kind == NOT_KNOWN
    kind = NO_WORD if is_other_space else kind
    for number, place, begun in state.items:
        phrase = phrases[number]
        if place == len(phrase.content):
            bits |= 0 if phrase.is_inside_word(kind) else phrase.bit
        else:
            byte_here = -1 if is_other_space and phrase.is_required else byte
            items.update(_go_on(number, phrase, place, begun=begun, byte=byte_here))
    for number, phrase in beginnings.get(byte, ()):
        if not (phrase.begins_word and phrase.is_inside_word(state.kind)):
            items.add((number, 1, b""))
    for item in list(items):
        phrase = phrases[item[0]]
        if item[1] == len(phrase.content) and not phrase.ends_word:
            bits |= phrase.bit
            items.remove(item)
    return _State(kind, frozenset(items)), bits


def _go_on(number: int, phrase: Phrase, place: int, *, begun: bytes, byte: int) -> Iterable[Item]:
    """Where a phrase that was begun is after one more byte; nowhere if the byte does not fit."""
    expects_space, follows_space = phrase.content[place] == SPACE, phrase.content[place - 1] == SPACE
    if phrase.is_required:
        if byte == phrase.content[place]:
            yield number, place + 1, b""
        return
    if (expects_space or follows_space) and byte >= 0:
        space = begun + bytes([byte])
        if space in SPACES:
            yield number, place + expects_space, b""
        elif space in SPACE_BEGINNINGS:
            yield number, place, space
    if not begun and not expects_space and byte == phrase.content[place]:
        yield number, place + 1, b""
