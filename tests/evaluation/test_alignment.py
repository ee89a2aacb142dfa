"""Alignment: error rates worked by hand, pieces to words, shifted rows, symmetrised links."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwise.errors import DataError, UsageError
from headwise.evaluation.alignment import (
    GoldLinks,
    assign_pieces,
    group_pieces,
    link_greatest,
    merge_pieces,
    parse_links,
    score_alignments,
    select_rows,
    symmetrize,
)


def test_error_rate_by_hand():
    """A = {00, 11, 22, 31}, S = {00, 11, 33}, P = S + {22}: 1 - (2 + 3) / (4 + 3) = 2/7."""
    predicted = frozenset({(0, 0), (1, 1), (2, 2), (3, 1)})
    found = score_alignments([predicted], [parse_links("0-0 1-1 3-3 2p2")])
    assert found.error_rate == pytest.approx(2 / 7)
    assert found.precision == pytest.approx(3 / 4)
    assert found.recall == pytest.approx(2 / 3)
    assert found.as_dict()["num_sentences"] == 1


def test_error_rate_sums_over_the_corpus():
    """Second sentence: A = {00}, S = {01}: sums 1 - (2 + 3 + 0 + 0) / (7 + 2)."""
    predicted = [frozenset({(0, 0), (1, 1), (2, 2), (3, 1)}), frozenset({(0, 0)})]
    gold = [parse_links("0-0 1-1 3-3 2?2"), parse_links("0-1")]
    assert score_alignments(predicted, gold).error_rate == pytest.approx(1 - 5 / 9)


links = st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=9)


@given(sure=links, more=links, wrong=st.tuples(st.integers(6, 9), st.integers(6, 9)))
def test_laws_of_the_error_rate(sure, more, wrong):
    gold = GoldLinks(sure, sure | more)
    perfect = score_alignments([sure], [gold])
    assert (perfect.error_rate, perfect.precision, perfect.recall) == (0, 1, 1)
    assert score_alignments([sure | more], [gold]).error_rate == pytest.approx(0)
    spoiled = score_alignments([sure | {wrong}], [gold])
    assert spoiled.error_rate > 0
    assert spoiled.precision < 1
    assert score_alignments([frozenset()], [gold]).error_rate == 1


def test_no_links_at_all_are_no_error():
    found = score_alignments([frozenset()], [GoldLinks(frozenset(), frozenset())])
    assert (found.error_rate, found.precision, found.recall) == (0, 1, 1)


def test_links_are_read():
    gold = parse_links(" 1-1 2p3 4?1\n", first=1)
    assert gold == GoldLinks(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2), (3, 0)}))
    assert parse_links("") == GoldLinks(frozenset(), frozenset())


@pytest.mark.parametrize(
    ("line", "first"), [("0-1 x", 0), ("0:1", 0), ("-1-2", 0), ("0-1", 1), ("1-²", 0)]
)
def test_what_is_no_link_is_refused(line, first):
    with pytest.raises(
        DataError, match=f"is not a link; write source-target.*counted from {first}"
    ):
        parse_links(line, first=first)


def test_one_alignment_for_each_sentence():
    with pytest.raises(DataError, match="1 alignments but 0 gold ones"):
        score_alignments([frozenset()], [])


def test_rows_that_predict_and_rows_that_read():
    """Target y0 y1; steps: <s> predicts y0, y0 predicts y1, y1 predicts the end."""
    attention = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]])
    assert select_rows(attention, 2, shifted=False).tolist() == [[0.9, 0.1], [0.8, 0.2]]
    assert select_rows(attention, 2, shifted=True).tolist() == [[0.8, 0.2], [0.3, 0.7]]
    assert link_greatest(select_rows(attention, 2, shifted=False)) == {(0, 0), (0, 1)}
    assert link_greatest(select_rows(attention, 2, shifted=True)) == {(0, 0), (1, 1)}


def test_too_few_rows_are_refused():
    with pytest.raises(
        UsageError, match="2 rows of attention cannot cover 2 target tokens shifted by one"
    ):
        select_rows(np.ones((2, 3)), 2, shifted=True)


def test_pieces_are_grouped_by_their_mark():
    assert group_pieces(["▁The", "▁cat", "s", ".", "▁sleep"]) == (0, 1, 1, 1, 2)
    assert group_pieces(["un", "marked", "▁word"]) == (0, 0, 1)
    assert group_pieces([]) == ()


def test_pieces_are_assigned_to_given_words():
    assert assign_pieces(["▁The", "▁cat", "s."], ["The", "cats", "."]) == (0, 1, 1)
    assert assign_pieces(["▁", "我们", "明", "天去", "北京"], ["我们", "明天", "去", "北京"]) == (
        0,
        0,
        1,
        1,
        3,
    )
    assert assign_pieces(["▁我", "<0xE4>", "<0xBB>", "<0xAC>", "去"], ["我们", "去"]) == (
        0,
        0,
        0,
        0,
        1,
    )
    text, spans = "我们 明天去", [(0, 2), (3, 5), (5, 6)]
    assert assign_pieces(["▁我", "们", "▁明天", "去", "▁"], [text[a:b] for a, b in spans]) == (
        0,
        0,
        1,
        2,
        2,
    )
    assert assign_pieces([], []) == ()


def test_another_text_is_refused():
    with pytest.raises(
        DataError, match="pieces spell 3 bytes, the words 4; give the same text twice"
    ):
        assign_pieces(["▁cat"], ["cats"])


def test_pieces_merge_by_sum_and_mean():
    """Source words: pieces 0+1, piece 2; the last column (end of sentence) is dropped. Target
    words: pieces 0+1.
    """
    attention = np.array([[0.1, 0.2, 0.6, 0.1], [0.3, 0.2, 0.1, 0.4]])
    assert merge_pieces(attention, (0, 0, 1), (0, 0)) == pytest.approx(np.array([[0.4, 0.35]]))


def test_zero_rows_and_empty_maps_link_nothing():
    assert link_greatest(np.array([[0.0, 0.0], [0.0, 1.0]])) == {(1, 1)}
    assert link_greatest(np.zeros((0, 3))) == frozenset()
    assert merge_pieces(np.zeros((1, 1)), (), ()).shape == (0, 0)


def test_symmetrised_links():
    forward = frozenset({(0, 0), (1, 1), (2, 2), (5, 5)})
    backward = frozenset({(0, 0), (2, 1), (2, 2), (5, 0)})
    assert symmetrize(forward, backward, method="intersection") == {(0, 0), (2, 2)}
    assert symmetrize(forward, backward, method="union") == forward | backward
    # (1, 1) touches (0, 0) and links two free words; then (2, 1) links no free word; the far ones
    # touch nothing.
    assert symmetrize(forward, backward) == {(0, 0), (1, 1), (2, 2)}
    assert symmetrize(forward, forward) == forward
