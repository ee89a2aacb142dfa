"""Surfaces put together are the decoded text, for every kind of tokenizer and any ids; symbols by
hand.
"""

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.text.character_tokenizer import learn_characters
from headwise.text.sentencepiece_tokenizer import learn_pieces
from headwise.text.spelling import (
    ESCAPE_SYMBOL,
    NO_WORD,
    NOT_KNOWN,
    OTHER_SPACE,
    SPACE,
    WORD,
    Spelling,
    read_symbols,
)
from headwise.text.tokenizer import ESCAPE, WORD_START, Tokenizer, unescape
from headwise.text.word_tokenizer import learn_words

from .corpus import chinese, english

LINES = [*english(), *chinese(), f"1 {WORD_START}10 {ESCAPE} 01 {ESCAPE}1"]


@functools.cache
def learn(kind: str) -> Tokenizer:
    if kind == "words":
        return learn_words(LINES, size=99, min_count=1, lowercase=False)
    if kind == "characters":
        return learn_characters(LINES, size=99, min_count=1)
    return learn_pieces(
        LINES,
        algorithm=kind.split()[0],
        size=370,
        byte_fallback="bytes" in kind,
        coverage=1.0,
        normalization="nmt_nfkc" if "nfkc" in kind else "identity",
    )


@pytest.mark.parametrize(
    "kind", ["words", "characters", "bpe bytes", "unigram bytes", "bpe", "bpe bytes nfkc"]
)
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_surfaces_put_together_are_the_text(kind, data):
    tokenizer = learn(kind)
    surfaces = tokenizer.surfaces()
    assert len(surfaces) == tokenizer.size
    ids = data.draw(st.lists(st.integers(3, tokenizer.size - 1), max_size=12))
    # A byte that no character can be made of is decoded as one replacement mark.
    joined = b"".join(surfaces[number] for number in ids).decode("utf-8", "surrogateescape")
    joined = "".join("\ufffd" if "\udc80" <= letter <= "\udcff" else letter for letter in joined)
    joined = unescape(joined)
    decoded = tokenizer.decode(ids)
    # sentencepiece leaves out the space at the beginning of a text, and all of them where it
    # normalises white space.
    assert decoded in (
        joined,
        joined.removeprefix(" "),
        joined.lstrip(" ") if "nfkc" in kind else joined,
    )


def test_symbols_by_hand():
    assert read_symbols(b" a.") == [SPACE, ord("a") + 256 * WORD, ord(".") + 256 * NO_WORD]
    assert read_symbols("ü".encode()) == [0xC3 + 256 * WORD, 0xBC + 256 * WORD]
    assert read_symbols("喝".encode()) == [0xE5, 0x96, 0x9D]
    assert read_symbols(b"\x96") == [0x96 + 256 * NOT_KNOWN]
    assert read_symbols("\u3000\n\x7f".encode()) == [OTHER_SPACE] * 3
    assert read_symbols(f"{ESCAPE}1".encode()) == [ESCAPE_SYMBOL, ord("1") + 256 * WORD]
    spelling = Spelling.of([b"", b"ab", b"", b"c"])
    assert len(spelling) == 4
    assert spelling.first.tolist() == [0, 0, 2, 2, 3]
