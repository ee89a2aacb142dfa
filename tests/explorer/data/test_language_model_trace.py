"""A text as a language model reads it: its numbers are the scores' own, its maps look back and sum
to one."""

from pathlib import Path

import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.explorer.data.language_model_trace import (
    attends,
    calculate_text_row,
    longest_text,
    trace_text,
)
from headwise.explorer.data.translation_trace import MapChoice
from headwise.tasks.language.language_model import LanguageModel
from tests.explorer.reading import make_reader
from tests.serving.api.test_language import ARPA

TEXT = "the old dog saw a child"


def test_numbers_are_those_of_the_score() -> None:
    model = make_reader()
    found = trace_text(model, TEXT, num_alternatives=5)
    (score,) = model.score([TEXT])
    np.testing.assert_allclose(
        found.log_probabilities, [one.log_probability for one in score.tokens], atol=1e-5
    )
    assert found.predicted_pieces == tuple(one.token for one in score.tokens)
    assert [one.chosen.log_probability for one in found.decisions] == pytest.approx(
        found.log_probabilities
    )
    for place, decision in enumerate(found.decisions):
        (row,) = model.model.next_words([found.tokens[:place]])
        assert decision.best[0].log_probability == pytest.approx(float(row[2:].max()), abs=1e-5)
    assert found.maps == found.present == ()


def test_every_place_looks_back_with_all_its_attention() -> None:
    found = trace_text(make_reader(), TEXT, maps=MapChoice(layers=(1, 2), heads=None))
    assert found.present == tuple(("decoder_self", layer, 2) for layer in range(3))
    assert [one.layer for one in found.maps] == [1, 2]
    pieces = [f"▁{word}" for word in TEXT.split()]
    assert found.read_pieces == ("</s>", *pieces)
    assert found.predicted_pieces == (*pieces, "</s>")
    for one in found.maps:
        assert one.weights.shape == (2, 7, 7)
        np.testing.assert_allclose(one.weights.sum(axis=-1), 1, atol=1e-6)
        assert np.triu(one.weights, 1).max() == 0
    (other,) = trace_text(make_reader(), TEXT, maps=MapChoice(layers=(1,))).maps
    np.testing.assert_array_equal(other.weights, found.maps[0].weights)
    shorter = trace_text(make_reader(), "the old dog", maps=MapChoice(layers=(1,))).maps[0]
    np.testing.assert_allclose(shorter.weights, other.weights[:, :4, :4], atol=1e-6)


def test_an_opened_row_is_that_of_the_map() -> None:
    model = make_reader()
    found = trace_text(model, TEXT, maps=MapChoice())
    for layer, head, query in ((0, 0, 0), (1, 1, 3), (-1, 1, 6)):
        row = calculate_text_row(model, TEXT, layer=layer, head=head, query=query)
        np.testing.assert_allclose(row.weights, found.maps[layer].weights[head, query], atol=1e-6)
        assert (row.query_pieces, row.key_pieces) == (found.predicted_pieces, found.read_pieces)
        assert row.visible == [key <= query for key in range(7)]
        assert row.is_softmax
        np.testing.assert_allclose(
            np.array(row.weights) @ np.array(row.values), row.output, atol=1e-5
        )
        np.testing.assert_allclose(np.array(row.keys) @ np.array(row.q), row.products, atol=1e-5)
    for wish, words in (
        ({"layer": 3}, "layer 3"),
        ({"head": 2}, "head 2"),
        ({"query": 7}, "query 7"),
    ):
        with pytest.raises(UsageError, match=words):
            calculate_text_row(model, TEXT, **wish)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    model = make_reader()
    assert attends(model)
    assert longest_text(model) == 12
    assert len(trace_text(model, "dog " * 12).tokens) == 12
    with pytest.raises(
        UsageError, match="has 13 pieces, this model was trained to read 12 at once"
    ):
        trace_text(model, "dog " * 13)
    with pytest.raises(UsageError, match="the text is empty"):
        trace_text(model, " ")
    (tmp_path / "tiny.arpa").write_text(ARPA, encoding="utf-8")
    counted = LanguageModel.load(tmp_path / "tiny.arpa")
    assert not attends(counted)
    assert longest_text(counted) is None
    with pytest.raises(UsageError, match="has no attention"):
        trace_text(counted, TEXT)
