"""What all tokens do at once is what each does symbol by symbol."""

import numpy as np
import pytest

from headwise.decoding.rules import token_effects
from headwise.decoding.rules.phrase_automaton import Phrase, build_automaton
from headwise.decoding.rules.token_effects import read_vocabulary
from headwise.text.spelling import Spelling

SURFACES = [
    b"",
    b" a",
    b"a",
    b"ab",
    b"b.",
    "茶".encode(),
    b"\xe8",
    b"\x8c",
    b"\xb6",
    b"aba",
    b" ",
    b". ",
    b"a b",
]


def make():
    phrases = [
        Phrase.of(text, bit=1 << i, is_required=True) for i, text in enumerate(["a", "b.", "茶"])
    ]
    phrases += [Phrase.of(text, bit=8, is_required=False) for text in ["ab", "a b", "..", "茶茶"]]
    return build_automaton(phrases, max_states=1000), Spelling.of(SURFACES)


def test_against_reading_symbol_by_symbol():
    automaton, spelling = make()
    effects = read_vocabulary(automaton, spelling, all_required=7)
    dead = len(automaton.moves)
    for token in range(len(SURFACES)):
        for begin in range(dead):
            state, bits = begin, 0
            for symbol in spelling.symbols[spelling.first[token] : spelling.first[token + 1]]:
                found = int(automaton.found[state, symbol])
                if found >= 8:
                    state = dead
                    break
                state, bits = int(automaton.moves[state, symbol]), bits | found
            column = effects.classes[token]
            assert effects.moves[begin, column] == state
            assert state == dead or effects.found[begin, column] == bits
    assert (effects.moves[dead] == dead).all()
    assert len(np.unique(effects.classes)) == effects.moves.shape[1]


@pytest.mark.parametrize("bound", ["MAX_ENTRIES", "MAX_READ"])
def test_more_than_the_bounds_is_refused(bound, monkeypatch):
    automaton, spelling = make()
    monkeypatch.setattr(token_effects, bound, 5 * len(automaton.moves))
    assert read_vocabulary(automaton, spelling, all_required=7) is None
