"""The expert: its edits are right, and no shorter ones exist."""

from functools import cache
from itertools import combinations, product

import pytest
import torch
from torch import Tensor

from headwise.data.token_edits import delete_tokens, insert_placeholders, is_word
from headwise.text.tokenizer import BOS, EOS, PAD
from headwise.training.parallel.expert_edits import ExpertEdits, common_lengths, expert_edits
from tests.data.test_token_edits import drawn, padded


def apply(edits: ExpertEdits, start: Tensor, target: Tensor) -> Tensor:
    """Delete, insert placeholders, and fill them with the target's words, from left to right."""
    left = delete_tokens(start, edits.deleted)
    written, known = insert_placeholders(left, edits.inserted, width=target.shape[1])
    return written.masked_scatter(~known, target[edits.filled])


def longest_common(first: list[int], second: list[int]) -> int:
    """The textbook recursion."""

    @cache
    def longest(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return 0
        if first[i - 1] == second[j - 1]:
            return longest(i - 1, j - 1) + 1
        return max(longest(i - 1, j), longest(i, j - 1))

    return longest(len(first), len(second))


@pytest.mark.parametrize(("longest", "vocab"), [(5, 2), (13, 3), (19, 17), (41, 5)])
def test_the_edits_turn_any_start_into_the_target(longest: int, vocab: int) -> None:
    start = padded(drawn(101, longest, vocab=vocab, key="start"))
    target = padded(drawn(101, longest + 2, vocab=vocab, key="target"))
    edits = expert_edits(start, target)
    assert apply(edits, start, target).equal(target)
    assert not (edits.deleted & ~is_word(start)).any(), "<s>, </s> and padding stay"
    assert edits.inserted.sum(1).equal(edits.filled.sum(1))
    assert (edits.inserted >= 0).all()


@pytest.mark.parametrize(("longest", "vocab"), [(7, 2), (23, 4), (31, 11)])
def test_the_number_of_edits_is_the_indel_distance(longest: int, vocab: int) -> None:
    starts = drawn(53, longest, vocab=vocab, key="start")
    targets = drawn(53, longest, vocab=vocab, key="target")
    edits = expert_edits(padded(starts), padded(targets))
    expected = [
        len(start) + len(target) - 2 * longest_common(start, target)
        for start, target in zip(starts, targets, strict=True)
    ]
    assert (edits.deleted.sum(1) + edits.filled.sum(1)).tolist() == expected


def test_all_pairs_of_short_sequences_against_enumeration() -> None:
    """Every set of deletions of every start is tried."""
    sequences = [list(words) for length in range(5) for words in product((4, 5), repeat=length)]
    left = [
        {words for size in range(len(one) + 1) for words in combinations(one, size)}
        for one in sequences
    ]
    pairs = list(product(range(len(sequences)), repeat=2))
    start = padded([sequences[i] for i, _ in pairs])
    target = padded([sequences[j] for _, j in pairs])
    edits = expert_edits(start, target)
    assert apply(edits, start, target).equal(target)
    kept = (is_word(start) & ~edits.deleted).sum(1)
    assert kept.tolist() == [max(map(len, left[i] & left[j])) for i, j in pairs]


def test_a_pair_worked_by_hand() -> None:
    start, target = padded([[7, 8, 8, 9]]), padded([[8, 5, 6, 9, 4]])
    edits = expert_edits(start, target)
    assert edits.deleted.tolist() == [[False, True, False, True, False, False]], "the first 8 stays"
    assert delete_tokens(start, edits.deleted).tolist() == [[1, 8, 9, 2, PAD, PAD]]
    assert edits.inserted.tolist() == [[0, 2, 1, 0, 0]]
    assert edits.filled.tolist() == [[False, False, True, True, False, True, False]]


def test_the_earlier_of_equal_words_stays_and_matches_the_earlier() -> None:
    edits = expert_edits(padded([[5, 5, 5]]), padded([[5]]))
    assert edits.deleted.tolist() == [[False, False, True, True, False]]
    edits = expert_edits(padded([[5]]), padded([[5, 5, 5]]))
    assert edits.filled.tolist() == [[False, False, True, True, False]]
    assert edits.inserted.tolist() == [[0, 2]]


def test_equal_sequences_and_empty_ones_need_no_edits() -> None:
    sequences = [[5, 6, 7], [], [5]]
    edits = expert_edits(padded(sequences, 7), padded(sequences))
    assert not edits.deleted.any()
    assert not edits.inserted.any()
    assert not edits.filled.any()


def test_a_pair_alone_is_a_pair_in_a_batch() -> None:
    starts, targets = drawn(17, 11, key="start"), drawn(17, 13, key="target")
    batch = expert_edits(padded(starts), padded(targets))
    for row, (start, target) in enumerate(zip(starts, targets, strict=True)):
        alone = expert_edits(padded([start]), padded([target]))
        for together, single in zip(batch, alone, strict=True):
            assert together[row, : single.shape[1]].equal(single[0])
            assert not together[row, single.shape[1] :].any()


def test_sentences_in_one_row_have_the_edits_of_each_alone() -> None:
    starts, targets = drawn(4, 11, vocab=3, key="start"), drawn(4, 13, vocab=3, key="target")
    pairs = list(zip(starts, targets, strict=True))
    start, target = (
        torch.tensor([[token for words in side for token in (BOS, *words, EOS)]])
        for side in (starts, targets)
    )
    together = expert_edits(start, target)
    alone = [expert_edits(padded([start]), padded([target])) for start, target in pairs]
    assert together.deleted.equal(torch.cat([one.deleted for one in alone], 1))
    assert together.filled.equal(torch.cat([one.filled for one in alone], 1))
    left = delete_tokens(start, together.deleted)
    real = left[:, 1:] > BOS
    expected = [one.inserted[:, : int((~one.deleted).sum()) - 1] for one in alone]
    assert together.inserted[real].equal(torch.cat(expected, 1)[0])
    assert not together.inserted[~real].any()


def test_the_table_is_that_of_the_recursion() -> None:
    start, target = [4, 5, 4, 6, 6], [5, 4, 6]
    table = common_lengths(padded([start]), padded([target]))
    first, second = [1, *start, 2], [1, *target, 2]
    for i, j in product(range(len(first) + 1), range(len(second) + 1)):
        assert table[i, 0, j] == longest_common(first[:i], second[:j])
