"""Records of what a decoding considered: each rebuilds the best hypothesis, tracing changes no
result, and a record has a bounded size."""

from typing import Any

import pytest
import torch

from headwise.decoding.choices import DraftedSettings, make_generator
from headwise.decoding.parallel.ctc import collapse
from headwise.decoding.parallel.ctc_search import CtcBeamSettings
from headwise.decoding.parallel.mask_predict import MaskPredictSettings
from headwise.decoding.parallel.one_pass import OnePassSettings
from headwise.decoding.records import (
    MOST_PLACES,
    NUM_SHOWN,
    AlignmentRecord,
    DraftRecord,
    GraphRecord,
    LengthRecord,
    best_choices,
)
from headwise.decoding.results import SearchResult
from headwise.text.tokenizer import BOS, EOS, PAD
from tests.decoding.conftest import improvise
from tests.decoding.drafting.fakes import FakeVerifyingStepper
from tests.decoding.parallel import test_ctc_search as ctc
from tests.decoding.parallel import test_graph_search as graph
from tests.decoding.parallel import test_one_pass as one_pass

SOURCES = [[5, 6, 6, 7], [8], [], [9, 10, 11, 12, 13]]


def traced(settings: Any, model: Any) -> list[SearchResult]:
    """The results with their records; without tracing they are the same."""
    assert settings.keeps_record
    assert settings.is_traceable
    generator = make_generator(settings, model)
    found = generator.generate(SOURCES, settings, traced=True)
    for one, plain in zip(found, generator.generate(SOURCES, settings), strict=True):
        assert plain.record is None
        assert one.hypotheses == plain.hypotheses
    assert found[2].record is None, "nothing is considered for an empty sentence"
    return [one for one in found if one.best.tokens]


@pytest.mark.parametrize("settings", [OnePassSettings(), CtcBeamSettings(size=3)])
def test_the_alignment_of_ctc_collapses_to_the_result(settings: Any) -> None:
    for one in traced(settings, ctc.Doubler()):
        record = one.record
        assert isinstance(record, AlignmentRecord)
        assert collapse(record.chosen) == one.best.tokens
        assert len(record.chosen) == len(record.tokens) == record.num_positions
        for symbols, values in zip(record.tokens, record.log_probabilities, strict=True):
            assert len(symbols) == NUM_SHOWN
            assert list(values) == sorted(values, reverse=True)
            assert not {BOS, EOS} & set(symbols), "symbols that are never written are not offered"
        if settings.kind == "one_pass":
            assert record.chosen == tuple(symbols[0] for symbols in record.tokens)
            total = sum(record.chosen_log_probabilities)
            assert total == pytest.approx(one.best.log_probability)


@pytest.mark.parametrize("settings", graph.SEARCHES, ids=lambda one: one.kind)
def test_the_path_of_a_graph_writes_the_result(settings: Any) -> None:
    for one in traced(settings, graph.Skipper()):
        record = one.record
        assert isinstance(record, GraphRecord)
        assert record.path[0] == 0
        assert record.path[-1] == record.num_vertices - 1
        offered = [record.tokens[vertex] for vertex in record.path]
        assert all(
            token in tokens
            for token, tokens in zip([BOS, *one.best.tokens, EOS], offered, strict=True)
        )
        assert record.tokens[0] == (BOS,), "the first vertex can write nothing else"
        for vertex, links in enumerate(record.links):
            assert all(vertex < link < record.num_vertices for link in links)
            total = torch.tensor(record.link_log_probabilities[vertex]).exp().sum()
            assert total <= 1.00001
        assert record.links[-1] == (), "no link leaves the last vertex"


def test_every_draft_is_accepted_or_not_and_the_rounds_are_the_result() -> None:
    settings = DraftedSettings(max_length=9)
    for one in traced(settings, FakeVerifyingStepper(improvise)):
        record = one.record
        assert isinstance(record, DraftRecord)
        assert len(record.rounds) == one.num_steps
        written: list[int] = []
        for number, part in enumerate(record.rounds):
            assert len(part.draft) == len(part.log_probabilities) <= settings.block
            written += part.draft[: part.num_accepted]
            if part.own is None:
                assert number == len(record.rounds) - 1
            else:
                written.append(part.own)
                assert [part.own] != list(part.draft[part.num_accepted :][:1])
        assert written == [*one.best.tokens, *([EOS] if one.best.finished else [])]


@pytest.mark.parametrize(
    "settings", [OnePassSettings(lengths=3), MaskPredictSettings(lengths=3, passes=2)]
)
def test_the_lengths_that_were_tried(settings: Any) -> None:
    for one in traced(settings, one_pass.Speller()):
        record = one.record
        assert isinstance(record, LengthRecord)
        assert record.lengths[record.chosen] == len(one.best.tokens) + 1
        assert record.scores[record.chosen] == max(record.scores) == one.best.score
        assert list(record.log_probabilities) == sorted(record.log_probabilities, reverse=True)
        assert len(set(record.lengths)) == len(record.lengths) <= 3


def test_a_fixed_number_of_positions_tries_no_lengths() -> None:
    found = make_generator(OnePassSettings(), one_pass.Speller(num_begins=9)).generate(
        SOURCES, OnePassSettings(), traced=True
    )
    assert [one.record for one in found] == [None] * len(SOURCES)


def test_a_record_of_many_positions_is_cut() -> None:
    table = torch.zeros(MOST_PLACES + 7, 3)
    table[:, PAD] = float("-inf")
    tokens, values = best_choices(table)
    assert len(tokens) == len(values) == MOST_PLACES
    assert {len(one) for one in tokens} == {2}, "what is impossible is left out"
