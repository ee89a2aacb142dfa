"""Words from pieces: sums are kept, words are spelled as they were written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.explorer.data.word_grouping import group_pieces, merge_weights
from tests.explorer.examples import random_weights

PIECE = st.sampled_from(
    ["▁", "▁the", "ing", "s", "'", ".", "，", "猫", "▁猫", "<unk>", "</s>", "<0xE7>", "-", "▁("]
)


@given(st.lists(PIECE, min_size=1, max_size=11), st.lists(PIECE, min_size=1, max_size=13))
def test_merging_keeps_row_sums(queries: list[str], keys: list[str]) -> None:
    weights = random_weights(3, len(queries), len(keys), key="merge")
    merged = merge_weights(weights, group_pieces(tuple(queries)), group_pieces(tuple(keys)))
    np.testing.assert_allclose(merged.sum(axis=-1), 1.0)


@given(st.lists(PIECE, min_size=1, max_size=17))
def test_words_are_unbroken_runs_of_pieces(pieces: list[str]) -> None:
    words = group_pieces(tuple(pieces))
    steps = np.diff(words.word_of_piece)
    assert words.word_of_piece[0] == 0
    assert set(steps.tolist()) <= {0, 1}
    assert len(words.text) == words.word_of_piece[-1] + 1
    assert len(words.word_of_piece) == len(pieces)


def test_hand_worked_merge() -> None:
    weights = np.array([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2], [0.0, 0.4, 0.6]])
    words = group_pieces(("▁run", "ning", "▁fast"))
    np.testing.assert_allclose(merge_weights(weights, words, words), [[0.55, 0.45], [0.4, 0.6]])


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ("▁did n 't ▁stop . </s>", ("didn't", "stop", ".", "</s>")),
        ("<s> ▁well - known ▁( cat )", ("<s>", "well-known", "(", "cat", ")")),
        ("▁ 动物 太 累 了 。 </s>", ("动物", "太", "累", "了", "。", "</s>")),
        ("▁caf <0xC3> <0xA9> ▁<0xE7>", ("café", "\ufffd")),
        ("▁ </s>", ("▁", "</s>")),
        ("t h e ▁ c a t", ("the", "cat")),
        ("▁a <unk> ▁b", ("a", "<unk>", "b")),
    ],
)
def test_words_are_spelled_back(pieces: str, words: tuple[str, ...]) -> None:
    assert group_pieces(tuple(pieces.split())).text == words
