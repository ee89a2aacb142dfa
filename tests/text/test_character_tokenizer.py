import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.errors import DataError
from headwise.text.character_tokenizer import learn_characters

from .corpus import chinese


@given(st.text(st.sampled_from("abc 你好")))
def test_known_characters_come_back(text: str) -> None:
    tokenizer = learn_characters(["abc 你好"], size=100, min_count=1)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_unknown_and_pieces() -> None:
    tokenizer = learn_characters(["aab b"], size=100, min_count=1)
    assert tokenizer.decode([1, *tokenizer.encode("a z"), 2]) == "a ⁇"
    assert tokenizer.pieces(tokenizer.encode("a b")) == ["a", "▁", "b"]
    assert tokenizer.encode_batch(["ab", ""]) == [tokenizer.encode("ab"), []]


def test_size_is_a_maximum() -> None:
    assert learn_characters(chinese(), size=11, min_count=1).size == 11
    assert learn_characters(["ab"], size=11, min_count=1).size == 6


def test_no_characters() -> None:
    with pytest.raises(DataError, match="characters from is empty"):
        learn_characters([""], size=9, min_count=1)
