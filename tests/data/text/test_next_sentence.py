"""Pairs of lines: one half follow, the others come from anywhere else; the same stream from every
cursor and for every share.
"""

from itertools import islice

import numpy as np
import torch

from headwise.data.batching import Share
from headwise.data.labels.labelled_rows import LabelledTokens
from headwise.data.text.next_sentence import NEXT, OTHER, LinePair, PairRows, draw_pairs, join_pairs

LENGTHS = np.random.default_rng(7).integers(2, 6, size=41)


def _lines() -> LabelledTokens:
    """Line n is <s> and copies of 4 + n."""
    tokens = np.concatenate(
        [[1, *[4 + number] * (length - 1)] for number, length in enumerate(LENGTHS)]
    )
    return LabelledTokens(tokens, np.zeros_like(tokens), np.concatenate([[0], np.cumsum(LENGTHS)]))


def _rows(share: Share = Share()) -> PairRows:
    return PairRows(_lines(), rows=2, row_tokens=11, seed=5, fingerprint="f", share=share)


def test_one_half_follows_and_nothing_follows_itself() -> None:
    for epoch, begins in ((0, 0), (1, 1)):
        pairs = draw_pairs(2003, seed=3, epoch=epoch)
        assert [pair.first for pair in pairs] == list(range(begins, 2002, 2))
        assert all((pair.second == pair.first + 1) == (pair.kind == NEXT) for pair in pairs)
        assert all(pair.second != pair.first and 0 <= pair.second < 2003 for pair in pairs)
        assert abs(sum(pair.kind == NEXT for pair in pairs) - 500) < 60
    assert draw_pairs(2003, seed=3, epoch=0) != draw_pairs(2003, seed=3, epoch=2)
    others = {
        pair.second
        for epoch in range(60)
        for pair in draw_pairs(3, seed=1, epoch=2 * epoch)
        if pair.kind == OTHER
    }
    assert others == {2}, "of three lines one is left"


def test_a_pair_is_one_sentence_with_its_kind_at_the_first_token() -> None:
    joined = join_pairs(_lines(), [LinePair(3, 4, NEXT), LinePair(7, 0, OTHER)])
    first = joined.tokens[: joined.offsets[1]].tolist()
    assert first == [1, *[7] * (LENGTHS[3] - 1), 1, *[8] * (LENGTHS[4] - 1)]
    assert joined.targets[joined.offsets[:-1]].tolist() == [NEXT, OTHER]
    assert (joined.targets != 0).sum() == 2


def test_the_stream_goes_on_from_every_cursor() -> None:
    whole = list(islice(_rows().stream(None), 17))
    for start in (0, 5, 11):
        again = islice(_rows().stream(whole[start][1]), 5)
        for (batch, cursor), (other, after) in zip(again, whole[start + 1 :], strict=False):
            assert cursor == after
            assert torch.equal(batch.tokens, other.tokens)
            assert torch.equal(batch.targets, other.targets)


def test_two_processes_together_are_one() -> None:
    one = next(_rows().stream(None))[0]
    parts = [next(_rows(Share(number, 2)).stream(None))[0] for number in (0, 1)]
    assert torch.equal(torch.cat([part.tokens for part in parts]), one.tokens)
