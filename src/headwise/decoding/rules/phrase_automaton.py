"""An automaton that finds phrases in text: it reads symbols one by one and reports complete
phrases.

`text/phrase_matching.py` defines an occurrence. A phrase that begins with a word character does not
match directly after another word character. A phrase that ends with a word character is complete
only if something else, or nothing, follows:

    "cat" in   c → a → t → "alogue"     no match: a longer word
                       t → " ", "." …   complete
                       t → the end      complete

A state is the kind of the last character and a chain of partial matches, the longest first. A
partial match says how many bytes of which phrase agree with the end of the text. The chain without
its first match is a state that was computed before: the failure link of Aho & Corasick 1975. So a
state costs a few steps however long its chain is, and phrases of n bytes make about n states.

A space in a required phrase is one space. A space in a forbidden phrase is white space of any kind
and length, also if byte pieces spell it, so that two spaces do not hide the phrase. If byte pieces
spell a character, its kind is not known: it never completes a required phrase and never hides a
forbidden one. An escape and the digit after it are one character that belongs to no word
(`text/tokenizer.py`), also if several tokens spell them; so the kind of the last character includes
how much of an escape was read.
Tested against `occurs` on random texts, cut into pieces and bytes at random.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from headwise.text.phrase_matching import is_space, is_word_character, single_spaced
from headwise.text.spelling import (
    ESCAPE_SYMBOL,
    NO_WORD,
    NOT_KNOWN,
    NUM_SYMBOLS,
    OTHER_SPACE,
    SPACE,
    WORD,
)
from headwise.text.tokenizer import ESCAPE

LONG_SPACES = frozenset(chr(code).encode() for code in range(0x80, 0x3001) if is_space(chr(code)))
"""White space of several bytes. White space of one byte is the symbol of a space."""
SPACES = LONG_SPACES | {bytes([SPACE])}
SPACE_BEGINNINGS = frozenset(
    space[:length] for space in LONG_SPACES for length in range(1, len(space))
)
SPACE_PARTS = {
    begun: frozenset(
        space[len(begun)] for space in LONG_SPACES if space.startswith(begun) and space != begun
    )
    for begun in (b"", *SPACE_BEGINNINGS)
}
"""Bytes that continue a space of several bytes."""

ONE_BYTE, TWO_BYTES, ESCAPED = 3, 4, 5
"""More kinds of what was read last: byte pieces of an escape, and a whole escape."""
ESCAPE_BYTES = {
    byte + 256 * NOT_KNOWN: (before, after)
    for byte, before, after in zip(
        ESCAPE.encode(), (None, ONE_BYTE, TWO_BYTES), (ONE_BYTE, TWO_BYTES, ESCAPED), strict=True
    )
}
"""The kind before such a byte (None: any) and the kind after it."""
ESCAPED_DIGITS = frozenset(digit + 256 * WORD for digit in b"01")

MAX_STEPS_OF_STATE = 64
"""A bound on the work: chains and steps of chains per permitted state."""

Item = tuple[int, int, bytes]
"""Number of the phrase, its bytes read so far, and the bytes of an unfinished space."""


@dataclass(frozen=True)
class Phrase:
    """One phrase to look for; `bit` is the bit it is reported by."""

    content: bytes
    bit: int
    is_required: bool
    begins_word: bool
    ends_word: bool

    @staticmethod
    def of(text: str, *, bit: int, is_required: bool) -> "Phrase":
        text = single_spaced(text)
        return Phrase(
            text.encode(), bit, is_required, is_word_character(text[0]), is_word_character(text[-1])
        )

    def is_inside_word(self, kind: int) -> bool:
        return kind == WORD or (self.is_required and kind in (NOT_KNOWN, ONE_BYTE, TWO_BYTES))


@dataclass(frozen=True)
class PhraseAutomaton:
    """State 0 is the beginning of a text."""

    moves: NDArray[np.int32]
    """[state, symbol]: the next state."""
    found: NDArray[np.int32]
    """[state, symbol]: bits of the phrases that this symbol shows to be complete."""
    at_end: NDArray[np.int32]
    """[state]: bits of the phrases that are complete if the text ends here."""


def build_automaton(
    phrases: Sequence[Phrase], *, max_states: int, symbols: Collection[int] = range(NUM_SYMBOLS)
) -> PhraseAutomaton | None:
    """One automaton for all phrases, for texts of these symbols.

    None if that takes more than `max_states` states.
    """
    return _Builder(phrases, frozenset(symbols)).build(max_states)


def kind_of(symbol: int) -> int:
    """The kind of the character that a symbol belongs to."""
    return NO_WORD if symbol in (OTHER_SPACE, ESCAPE_SYMBOL) else symbol >> 8


def kind_after(kind: int, symbol: int) -> int:
    """The kind of what was read last, after one more symbol."""
    if symbol == ESCAPE_SYMBOL:
        return ESCAPED
    if kind == ESCAPED and symbol in ESCAPED_DIGITS:
        return NO_WORD
    before, after = ESCAPE_BYTES.get(symbol, (kind, kind_of(symbol)))
    return after if before in (None, kind) else kind_of(symbol)


@cache
def _kinds_after() -> NDArray[np.int64]:
    """[kind, symbol]: `kind_after`."""
    return np.array(
        [[kind_after(kind, symbol) for symbol in range(NUM_SYMBOLS)] for kind in range(ESCAPED + 1)]
    )


class _Builder:
    """Chains are numbered as they are found; chain 0 is empty."""

    def __init__(self, phrases: Sequence[Phrase], symbols: frozenset[int]) -> None:
        self.phrases, self.symbols = phrases, symbols
        self.ordered = np.array(sorted(symbols), dtype=np.int64)
        self.beginnings: dict[int, list[tuple[int, Phrase]]] = {}
        for number, phrase in enumerate(phrases):
            self.beginnings.setdefault(phrase.content[0], []).append((number, phrase))
        begin_word = {phrase.is_required for phrase in phrases if phrase.begins_word}
        kinds = {WORD, ONE_BYTE, TWO_BYTES, ESCAPED} if begin_word else set()
        kinds |= {NOT_KNOWN} if True in begin_word else set()
        self.kinds = tuple(kind if kind in kinds else NO_WORD for kind in range(ESCAPED + 1))
        """Kinds that make no difference to any phrase are joined."""
        self.chains: list[tuple[Item, int]] = [((-1, 0, b""), 0)]
        self.watched: list[frozenset[int]] = [frozenset()]
        """For each chain the symbols that it reads differently from an empty chain."""
        self.pending: list[tuple[int, int]] = [(0, 0)]
        """For each chain the bits of forbidden and required phrases that only lack a word end."""
        self.numbers: dict[tuple[Item, int], int] = {}
        self.known: dict[tuple[int, int, int], tuple[int, int]] = {}
        self.states: dict[tuple[int, int], int] = {}
        self.waiting: list[tuple[int, int]] = []

    def build(self, max_states: int) -> PhraseAutomaton | None:
        self._number_of(NO_WORD, 0)
        kinds = np.array([kind_of(symbol) for symbol in range(NUM_SYMBOLS)])
        empty = {kind: self._read_beginnings(kind) for kind in set(self.kinds)}
        moves: list[NDArray[np.int32]] = []
        found: list[NDArray[np.int32]] = []
        for kind, chain in self.waiting:
            moves.append(empty[kind][0].copy())
            found.append(empty[kind][1].copy())
            for symbol in self.watched[chain]:
                after, bits = self._read(kind, chain, symbol)
                moves[-1][symbol], found[-1][symbol] = (
                    self._number_of(kind_after(kind, symbol), after),
                    bits,
                )
            forbidden, required = self.pending[chain]
            found[-1] |= forbidden * (kinds != WORD) | required * (kinds == NO_WORD)
            if (
                len(self.states) > max_states
                or len(self.chains) + len(self.known) > MAX_STEPS_OF_STATE * max_states
            ):
                return None
        at_end = [sum(self.pending[chain]) for _, chain in self.waiting]
        return PhraseAutomaton(np.stack(moves), np.stack(found), np.array(at_end, dtype=np.int32))

    def _number_of(self, kind: int, chain: int) -> int:
        state = self.kinds[kind], chain
        if state not in self.states:
            self.states[state] = len(self.states)
            self.waiting.append(state)
        return self.states[state]

    def _read_beginnings(self, kind: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The moves of a state without matches. Symbols that begin no phrase differ in their kind
        alone: the first of each kind is read, and stands for the others."""
        moves, found = np.zeros((2, NUM_SYMBOLS), dtype=np.int32)
        after = np.array(self.kinds)[_kinds_after()[kind, self.ordered]]
        is_read = np.isin(self.ordered & 255, list(self.beginnings))
        plain = np.flatnonzero(~is_read)
        is_read[plain[np.unique(after[plain], return_index=True)[1]]] = True
        for symbol in self.ordered[is_read].tolist():
            chain, found[symbol] = self._read(kind, 0, symbol)
            moves[symbol] = self._number_of(kind_after(kind, symbol), chain)
        others = self.ordered[~is_read]
        self.known.update(dict.fromkeys(zip(repeat(kind), repeat(0), others.tolist()), (0, 0)))
        numbers = [self.states.get((found_kind, 0), 0) for found_kind in range(ESCAPED + 1)]
        moves[others] = np.array(numbers)[after[~is_read]]
        return moves, found

    def _read(self, kind: int, chain: int, symbol: int) -> tuple[int, int]:
        """The chain after one symbol, and the bits of the phrases that end with it."""
        passed = []
        while chain and (kind, chain, symbol) not in self.known:
            passed.append(chain)
            chain = self.chains[chain][1]
        if (kind, chain, symbol) not in self.known:
            is_escaped = kind == ESCAPED and symbol in ESCAPED_DIGITS
            begun = [
                (number, 1, b"")
                for number, phrase in self.beginnings.get(symbol & 255, ())
                if not (phrase.begins_word and (phrase.is_inside_word(kind) or is_escaped))
            ]
            self.known[kind, chain, symbol] = self._put(begun, 0, 0)
        after, bits = self.known[kind, chain, symbol]
        for longer in reversed(passed):
            after, bits = self._put(list(self._go_on(self.chains[longer][0], symbol)), after, bits)
            self.known[kind, longer, symbol] = after, bits
        return after, bits

    def _put(self, items: Sequence[Item], chain: int, bits: int) -> tuple[int, int]:
        """Put items before a chain; complete ones become bits instead."""
        for item in reversed(items):
            phrase = self.phrases[item[0]]
            is_complete = item[1] == len(phrase.content)
            if is_complete and not phrase.ends_word:
                bits |= phrase.bit
                continue
            if (item, chain) not in self.numbers:
                self.numbers[item, chain] = len(self.chains)
                forbidden, required = self.pending[chain]
                bit = phrase.bit * is_complete
                self.pending.append(
                    (forbidden, required | bit)
                    if phrase.is_required
                    else (forbidden | bit, required)
                )
                self.watched.append(self.watched[chain] | self._watched_by(item))
                self.chains.append((item, chain))
            chain = self.numbers[item, chain]
        return chain, bits

    def _watched_by(self, item: Item) -> frozenset[int]:
        number, place, begun = item
        content, is_required = self.phrases[number].content, self.phrases[number].is_required
        if place == len(content):
            return frozenset()
        watched = {content[place] + 256 * kind for kind in (NO_WORD, WORD, NOT_KNOWN)}
        if not is_required and SPACE in content[max(0, place - 1) : place + 1]:
            watched |= {
                SPACE,
                OTHER_SPACE,
                *(byte + 256 * NOT_KNOWN for byte in SPACE_PARTS[begun]),
            }
        return frozenset(watched) & self.symbols

    def _go_on(self, item: Item, symbol: int) -> Iterator[Item]:
        """The match after one more symbol; none if the symbol does not fit."""
        number, place, begun = item
        phrase, byte = self.phrases[number], symbol & 255
        if place == len(phrase.content):
            return
        expected = phrase.content[place]
        if phrase.is_required:
            if byte == expected and symbol != OTHER_SPACE:
                yield number, place + 1, b""
            return
        if expected == SPACE or phrase.content[place - 1] == SPACE:
            space = begun + bytes([byte])
            if space in SPACES:
                yield number, place + (expected == SPACE), b""
            elif space in SPACE_BEGINNINGS and symbol >> 8 == NOT_KNOWN:
                yield number, place, space
        if not begun and byte == expected != SPACE:
            yield number, place + 1, b""
