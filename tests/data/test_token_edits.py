"""Edits of padded sequences against the same edits of Python lists."""

import torch

from headwise.data.token_edits import (
    PLACEHOLDER,
    delete_tokens,
    insert_placeholders,
    is_word,
    move,
    places_after_deletion,
    places_after_insertion,
    sentence_numbers,
    sentence_positions,
    width_with_begins,
)
from headwise.randomness import numpy_generator
from headwise.text.tokenizer import BOS, EOS, PAD

Sequence = list[int]


def padded(sequences: list[Sequence], width: int | None = None) -> torch.Tensor:
    """<s>, words, </s> and padding."""
    width = width or max(map(len, sequences)) + 2
    rows = [[BOS, *words, EOS] + [PAD] * (width - len(words) - 2) for words in sequences]
    return torch.tensor(rows)


def drawn(count: int, longest: int, *, vocab: int = 7, key: str = "words") -> list[Sequence]:
    generator = numpy_generator(key, count, longest)
    return [
        generator.integers(3, 3 + vocab, size=generator.integers(0, longest + 1)).tolist()
        for _ in range(count)
    ]


def test_words_are_neither_padding_nor_ends() -> None:
    assert is_word(padded([[3, 9], []])).tolist() == [
        [False, True, True, False],
        [False, False, False, False],
    ]


def test_deletion_is_that_of_lists() -> None:
    sequences = drawn(23, 11)
    tokens = padded(sequences)
    deleted = torch.from_numpy(numpy_generator("deleted").random(tokens.shape) < 0.4)
    deleted &= is_word(tokens)
    expected = [
        [word for word, goes in zip(words, flags[1:], strict=False) if not goes]
        for words, flags in zip(sequences, deleted.tolist(), strict=True)
    ]
    assert delete_tokens(tokens, deleted).equal(padded(expected, tokens.shape[1]))


def test_a_row_of_several_sentences_is_told_apart_by_their_beginnings() -> None:
    first, second = [BOS, 5, 6, EOS], [BOS, 5, EOS]
    row = torch.tensor([[*first, *second, PAD, PAD], [*second, *first, *[PAD] * 2]])
    assert sentence_numbers(row).tolist() == [
        [1, 1, 1, 1, 2, 2, 2, 0, 0],
        [1] * 3 + [2] * 4 + [0] * 2,
    ]
    assert sentence_positions(row)[:, :7].tolist() == [[0, 1, 2, 3, 0, 1, 2], [0, 1, 2, 0, 1, 2, 3]]
    assert width_with_begins(8) == 12


def test_insertion_is_that_of_lists() -> None:
    sequences = drawn(23, 7)
    tokens = padded(sequences)
    counts = torch.from_numpy(numpy_generator("counts").integers(0, 4, size=(23, 8)))
    counts = counts[:, : tokens.shape[1] - 1] * tokens[:, 1:].ne(PAD)
    expected = []
    for words, inserted in zip(sequences, counts.tolist(), strict=True):
        longer: list[int | None] = [None] * inserted[0]
        for word, count in zip(words, inserted[1:], strict=False):
            longer += [word] + [None] * count
        expected.append(longer)
    width = max(map(len, expected)) + 2
    found, known = insert_placeholders(tokens, counts, width=width)
    filled = [[PLACEHOLDER if word is None else word for word in one] for one in expected]
    assert found.equal(padded(filled, width))
    for row, words in zip(known.tolist(), expected, strict=True):
        is_given = [word is not None for word in words]
        assert row == [True, *is_given, True] + [True] * (width - len(words) - 2)


def test_values_move_with_their_tokens() -> None:
    tokens = padded([[5, 6, 7]])
    scores = torch.tensor([[0.0, 0.5, 0.25, 0.125, 0.0]])
    deleted = torch.tensor([[False, True, False, False, False]])
    place = places_after_deletion(tokens, deleted)
    assert place.tolist() == [[0, 5, 1, 2, 3]]
    assert move(scores, place, width=5, empty=0.0).tolist() == [[0.0, 0.25, 0.125, 0.0, 0.0]]
    place = places_after_insertion(tokens, torch.tensor([[2, 0, 1, 0]]), width=8)
    assert place.tolist() == [[0, 3, 4, 6, 7]]
    assert move(scores, place, width=8, empty=-1.0).tolist() == [
        [0.0, -1.0, -1.0, 0.5, 0.25, -1.0, 0.125, 0.0]
    ]
