"""Where words begin and end, worked by hand."""

from collections.abc import Sequence

import numpy as np
import pytest

from headwise.text.character_tokenizer import learn_characters
from headwise.text.word_boundaries import WordBounds


def _words(pieces: Sequence[str]) -> list[str]:
    number = WordBounds.of(pieces).number_words(np.arange(len(pieces)), np.ones(len(pieces), bool))
    return [
        "".join(piece for piece, at in zip(pieces, number, strict=True) if at == word)
        for word in dict.fromkeys(number)
    ]


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["▁the", "re", "fore", "▁", "a", "b"], ["▁therefore", "▁ab"]),
        (["th", "e", "▁end"], ["the", "▁end"]),
        (["我", "们", "g", "o", "去", "。"], ["我", "们", "go", "去", "。"]),
        (["▁中国", "人民", "▁", "北", "京"], ["▁中国", "人民", "▁", "北", "京"]),
        (["<0xE4>", "<0xB8>", "は", "<0xAD>"], ["<0xE4><0xB8>", "は", "<0xAD>"]),
        (["▁한", "국", "▁말"], ["▁한국", "▁말"]),
    ],
)
def test_words_of_pieces(pieces: list[str], words: list[str]) -> None:
    assert _words(pieces) == words


@pytest.mark.parametrize(("line", "count"), [("判断这个词的词性", 8), ("the dog is old", 4)])
def test_characters_of_both_kinds_of_script(line: str, count: int) -> None:
    tokenizer = learn_characters([line], size=100, min_count=1)
    tokens = np.array(tokenizer.encode(line))
    bounds = WordBounds.of(tokenizer.pieces(range(tokenizer.size)))
    assert len(set(bounds.number_words(tokens, tokens > 3).tolist())) == count


def test_what_is_no_word_stands_by_itself() -> None:
    bounds = WordBounds.of(["<pad>", "<s>", "▁a", "b"])
    tokens = np.array([1, 3, 3, 2, 3, 0, 0])
    assert bounds.number_words(tokens, tokens > 1).tolist() == [1, 2, 2, 3, 3, 4, 5]
