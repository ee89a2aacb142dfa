"""Computes what every token does to the automaton that finds phrases in text: the state after the
token, from every state (phrase_automaton.py).

All tokens are read together, symbol by symbol. Tokens with the same effect so far form one class,
and a class reads a symbol once. So the work grows with the number of classes and not with the
vocabulary. Work and memory are estimated first, and refused if they are too large.
Tested against reading token by token.
"""

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from headwise.decoding.rules.phrase_automaton import PhraseAutomaton
from headwise.text.spelling import NUM_SYMBOLS, Spelling

MAX_ENTRIES = 1 << 23
"""States times classes of tokens, classes of token beginnings included."""
MAX_READ = 1 << 28
"""States times symbols read."""
NUM_BITS = 8
"""Of the phrases that a token completes."""


@dataclass(frozen=True)
class TokenEffects:
    """The last state is final: a forbidden phrase was written."""

    classes: NDArray[np.int64]
    """[token]: its class."""
    moves: NDArray[np.int16]
    """[state, class]: the next state."""
    found: NDArray[np.uint8]
    """[state, class]: bits of the required phrases that such a token completes."""


def read_vocabulary(
    automaton: PhraseAutomaton, spelling: Spelling, *, all_required: int
) -> TokenEffects | None:
    """The effects of all tokens; None if that exceeds the bounds.

    `all_required` has the bits of the required phrases; other bits are of forbidden ones.
    """
    table = _join_tables(automaton, all_required)
    num_states = table.shape[1]
    effects = [np.arange(num_states, dtype=np.int32) << NUM_BITS]
    numbers = {_name(effects[0]): 0}
    classes = np.zeros(len(spelling), dtype=np.int64)
    lengths = np.diff(spelling.first)
    num_read = 0
    for place in range(int(lengths.max(initial=0))):
        here = np.flatnonzero(lengths > place)
        pairs = classes[here] * NUM_SYMBOLS + spelling.symbols[spelling.first[here] + place]
        pairs, inverse = np.unique(pairs, return_inverse=True)
        num_read += len(pairs) * num_states
        if num_read > MAX_READ:
            return None
        after = np.empty(len(pairs), dtype=np.int64)
        for i, (number, symbol) in enumerate(zip(*np.divmod(pairs, NUM_SYMBOLS), strict=True)):
            before = effects[number]
            effect = table[symbol].take(before >> NUM_BITS) | (before & all_required)
            after[i] = numbers.setdefault(_name(effect), len(effects))
            if after[i] == len(effects):
                if (len(effects) + 1) * num_states > MAX_ENTRIES:
                    return None
                effects.append(effect)
        classes[here] = after[inverse]
    used, classes = np.unique(classes, return_inverse=True)
    moves = np.empty((num_states, len(used)), dtype=np.int16)
    found = np.empty((num_states, len(used)), dtype=np.uint8)
    for column, number in enumerate(used):
        moves[:, column], found[:, column] = (
            effects[number] >> NUM_BITS,
            effects[number] & all_required,
        )
    return TokenEffects(classes, moves, found)


def _join_tables(automaton: PhraseAutomaton, all_required: int) -> NDArray[np.int32]:
    """[symbol, state]: the next state and the required phrases that are complete, as one number."""
    num_states = len(automaton.moves)
    is_forbidden = automaton.found > all_required
    table = np.where(is_forbidden, num_states, automaton.moves) << NUM_BITS
    table |= np.where(is_forbidden, 0, automaton.found)
    dead = np.full((1, NUM_SYMBOLS), num_states << NUM_BITS)
    return np.ascontiguousarray(np.vstack([table, dead]).T.astype(np.int32))


def _name(effect: NDArray[np.int32]) -> bytes:
    return blake2b(effect.data, digest_size=16).digest()
