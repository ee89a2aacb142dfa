"""The automaton finds what `occurs` finds, however the text is cut into pieces and bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.decoding.rules.phrase_automaton import Phrase, build_automaton
from headwise.text.phrase_matching import occurs, single_spaced
from headwise.text.spelling import read_symbols
from headwise.text.tokenizer import ESCAPE, unescape

LETTERS = "ab ü喝茶.\u00a0\u3000\x01"
phrases_of = st.lists(
    st.text(LETTERS, min_size=1, max_size=5).filter(single_spaced),
    min_size=1,
    max_size=3,
    unique_by=single_spaced,
)


def read(phrases, surfaces):
    """The bits of all phrases found in a text of these surfaces."""
    automaton = build_automaton(phrases, max_states=1000)
    state, bits = 0, 0
    for symbol in (symbol for surface in surfaces for symbol in read_symbols(surface)):
        bits |= int(automaton.found[state, symbol])
        state = int(automaton.moves[state, symbol])
    return bits | int(automaton.at_end[state])


def expect(texts, text, *, is_required):
    return sum(
        1 << number
        for number, phrase in enumerate(texts)
        if occurs(phrase, text, exactly=is_required)
    )


@given(texts=phrases_of, text=st.text(LETTERS, max_size=16), is_required=st.booleans())
@settings(max_examples=150, deadline=None)
def test_whole_characters_are_exact(texts, text, is_required):
    phrases = [
        Phrase.of(one, bit=1 << number, is_required=is_required) for number, one in enumerate(texts)
    ]
    assert read(phrases, [text.encode()]) == expect(texts, text, is_required=is_required)


@given(texts=phrases_of, text=st.text(LETTERS, max_size=16), data=st.data())
@settings(max_examples=150, deadline=None)
def test_bytes_save_no_forbidden_phrase_and_make_no_required_one(texts, text, data):
    """Each character stands whole or in single bytes, whose kind is not known."""
    surfaces = []
    for letter in text:
        whole = letter.encode()
        surfaces += [whole] if data.draw(st.booleans()) else [bytes([byte]) for byte in whole]
    for is_required in (False, True):
        phrases = [
            Phrase.of(one, bit=1 << number, is_required=is_required)
            for number, one in enumerate(texts)
        ]
        found, expected = read(phrases, surfaces), expect(texts, text, is_required=is_required)
        assert found & expected == (found if is_required else expected)
        unspaced = [
            number for number, one in enumerate(texts) if not set(one) & set("abü \u00a0\u3000\x01")
        ]
        for number in unspaced:
            assert (found ^ expected) >> number & 1 == 0, (
                "where no word characters are, bytes are exact too"
            )


escaped_texts = st.lists(
    st.sampled_from([ESCAPE, f"{ESCAPE}0", f"{ESCAPE}1", *"01a .，"]), max_size=12
).map("".join)


@given(
    texts=st.lists(
        st.sampled_from(["1", "0", "a", "1a", "0 1", "，", "."]),
        min_size=1,
        max_size=3,
        unique=True,
    ),
    data=st.data(),
)
@settings(max_examples=300, deadline=None)
def test_escapes_are_read_as_what_they_stand_for(texts, data):
    """The escape and its digit may stand in two tokens, and the escape in three bytes."""
    written = data.draw(escaped_texts)
    in_bytes = [data.draw(st.booleans()) for _ in written]
    surfaces = [
        part
        for letter, is_cut in zip(written, in_bytes, strict=True)
        for part in ([bytes([byte]) for byte in letter.encode()] if is_cut else [letter.encode()])
    ]
    for is_required in (False, True):
        phrases = [
            Phrase.of(one, bit=1 << number, is_required=is_required)
            for number, one in enumerate(texts)
        ]
        found, expected = (
            read(phrases, surfaces),
            expect(texts, unescape(written), is_required=is_required),
        )
        assert found & expected == (found if is_required else expected)
        if not any(in_bytes):
            assert found == expected


@pytest.mark.parametrize(
    ("phrase", "surfaces", "expected"),
    [
        ("喝", [b"\xe5", b"\x96", b"\x9d"], True),
        ("喝", [b"\xe5", b"\xe5", b"\x96", b"\x9d"], True),
        ("喝", [b"\xe5", b"\x96", b"x", b"\x9d"], False),
        ("a b", [b"a", b"\xc2", b"\xa0", b"b"], True),
        ("a b", [b"a", b" ", b"\xe2", b"\x80", b"\xa8", b" b"], True),
        ("a b", [b"a", b"\xe2", b"\x80", b"b"], False),
        ("cat", [b" ca", b"t", b"s"], False),
        ("cat", [b" c", b"at", b"."], True),
        ("cat", [ESCAPE.encode(), b"1cat"], True),
        ("cat", [b"\xef", b"\xa3", b"\xbe", b"1", b"cat"], True),
        ("cat", [b"\xef", b"\xa3", b"1", b"cat"], False),
        ("1", [ESCAPE.encode(), b"1"], False),
        ("1", [ESCAPE.encode(), b"0", b"1"], True),
    ],
)
def test_by_hand(phrase, surfaces, expected):
    assert bool(read([Phrase.of(phrase, bit=1, is_required=False)], surfaces)) is expected


def test_too_many_states():
    assert build_automaton([Phrase.of("abcdefgh", bit=1, is_required=False)], max_states=5) is None
