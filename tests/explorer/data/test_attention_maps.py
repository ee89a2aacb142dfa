"""Traces: what they hold together, and every way in which they refuse."""

import dataclasses

import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.explorer.data.attention_maps import (
    AttentionMap,
    choose_head,
    describe_head,
    describe_layer,
)
from tests.explorer.examples import ENGLISH, GERMAN, NUM_HEADS, make_trace, random_weights


def test_rows_and_columns_of_each_kind() -> None:
    trace = make_trace()
    assert (trace.query_pieces("cross"), trace.key_pieces("cross")) == (GERMAN, ENGLISH)
    assert trace.key_pieces("decoder_self")[0] == "<s>"
    assert trace.query_pieces("decoder_self")[-1] == "</s>"


def test_highest_layer_is_minus_one() -> None:
    trace = make_trace()
    assert trace.map_of("cross", layer=-1) is trace.map_of("cross", layer=1)


def test_mean_and_maximum_bound_every_head() -> None:
    weights = random_weights(NUM_HEADS, 5, 7, key="heads")
    assert (choose_head(weights, "max") >= choose_head(weights, "mean")).all()
    np.testing.assert_allclose(
        sum(choose_head(weights, head) for head in range(NUM_HEADS)) / NUM_HEADS,
        choose_head(weights, "mean"),
    )


def test_people_count_from_one() -> None:
    assert (describe_layer(0), describe_head(2)) == (("layer 1", "第 1 层"), ("head 3", "第 3 头"))
    assert describe_head("mean")[0] == "mean of the heads"


@pytest.mark.parametrize("head", [-1, NUM_HEADS, "median"])
def test_absent_head_is_refused(head: int) -> None:
    with pytest.raises(UsageError, match="there is no head"):
        choose_head(random_weights(NUM_HEADS, 2, 2, key="refused"), head)


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="is of kind 'sideways'"):
        AttentionMap("a", "sideways", 0, random_weights(1, 2, 2, key="kind"))  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(2, 2), (1, 0, 2), (1, 1, 2, 2)])
def test_wrong_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="has shape"):
        AttentionMap("a", "cross", 0, np.zeros(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_no_weights_are_refused(value: float) -> None:
    with pytest.raises(UsageError, match="not finite numbers"):
        AttentionMap("a", "cross", 0, np.full((1, 2, 2), value))


def test_weights_may_be_negative_and_the_strongest_is_farthest_from_zero() -> None:
    weights = np.array([[[0.2, -0.7]], [[-0.3, 0.6]]])
    assert AttentionMap("a", "cross", 0, weights).is_signed
    assert not AttentionMap("a", "cross", 0, np.abs(weights)).is_signed
    assert choose_head(weights, "max").tolist() == [[-0.3, -0.7]]
    assert choose_head(weights, "mean") == pytest.approx(np.array([[-0.05, -0.05]]))


def test_pieces_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="special marks"):
        dataclasses.replace(make_trace(), source_pieces=ENGLISH[:-1])


def test_a_trace_without_maps_is_refused() -> None:
    with pytest.raises(UsageError, match="no attention maps"):
        dataclasses.replace(make_trace(), maps=())


def test_absent_kind_and_layer_are_refused_with_what_there_is() -> None:
    trace = make_trace()
    only_cross = dataclasses.replace(trace, maps=trace.maps_of("cross"))
    with pytest.raises(UsageError, match="no 'encoder_self' map; it has cross"):
        only_cross.maps_of("encoder_self")
    with pytest.raises(UsageError, match="choose among the layers 0, 1"):
        trace.map_of("cross", layer=5)
