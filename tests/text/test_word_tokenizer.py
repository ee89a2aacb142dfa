import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.errors import DataError
from headwise.text.word_tokenizer import learn_words

LINES = ["the cat sees the dog", "The dog sees a bird"]


@given(st.lists(st.sampled_from(["the", "cat", "sees", "dog", "The", "a", "bird"])))
def test_known_words_come_back(words: list[str]) -> None:
    tokenizer = learn_words(LINES, size=100, min_count=1, lowercase=False)
    assert tokenizer.decode(tokenizer.encode("  ".join(words))) == " ".join(words)


def test_rare_words_become_a_visible_unknown() -> None:
    tokenizer = learn_words(LINES, size=100, min_count=2, lowercase=True)
    assert tokenizer.size == 4 + 3  # the, sees, dog
    assert tokenizer.encode("The cat sees") == [4, 3, 6]
    assert tokenizer.decode([1, 4, 3, 6, 2, 0]) == "the ⁇ sees"
    assert tokenizer.pieces([1, 4, 3]) == ["<s>", "▁the", "<unk>"]


def test_size_keeps_the_most_frequent_in_a_fixed_order() -> None:
    tokenizer = learn_words(LINES, size=6, min_count=1, lowercase=False)
    assert tokenizer.vocabulary.entries == ("dog", "sees")  # twice each, by name; "the" is next
    assert tokenizer.encode_batch(["dog the"]) == [[4, 3]]


def test_no_words() -> None:
    with pytest.raises(DataError, match="words from is empty"):
        learn_words(["", "  "], size=9, min_count=1, lowercase=False)
