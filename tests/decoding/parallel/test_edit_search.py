"""Generation by edits with a model whose policies know the target: batches, limits, rules."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from headwise.decoding.choices import default_decoding, make_generator
from headwise.decoding.generator import Watcher
from headwise.decoding.parallel.edit_search import EditSearch
from headwise.decoding.parallel.edits import EditSettings
from headwise.decoding.results import EMPTY_RESULT, SearchResult
from headwise.decoding.search.beam import BeamSettings
from headwise.errors import SettingsError, UsageError
from headwise.text.tokenizer import EOS
from tests.decoding.parallel.test_edits import Expert

SOURCES = [[5, 6, 7, 7], [8], [], [9, 10, 11, 12, 4], [4, 8]]


class Reverser:
    """Its experts write each source backwards, one word per gap and round."""

    output_form = "revisions"
    device = torch.device("cpu")

    def read_sources(self, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        return [list(source[::-1]) for source in sources]

    def policies(self, memory: list[list[int]]) -> Expert:
        return Expert(memory, step=1)


def generate(sources: list[list[int]], *, traced: bool = False, **changes: Any) -> list[Any]:
    generator = make_generator(EditSettings(**changes), Reverser())
    assert isinstance(generator, EditSearch)
    return generator.generate(sources, EditSettings(**changes), traced=traced)


def test_sentences_are_written_and_empty_ones_stay_empty() -> None:
    found = generate(SOURCES)
    assert [list(one.best.tokens) for one in found] == [source[::-1] for source in SOURCES]
    assert found[2] == EMPTY_RESULT
    assert all(one.passes == () for one in found), "kept only if asked for"


def test_a_sentence_alone_equals_the_sentence_in_a_batch() -> None:
    together = generate(SOURCES, traced=True)
    assert [generate([source], traced=True)[0] for source in SOURCES] == together


def test_every_round_is_recorded() -> None:
    (found,) = generate([[5, 6, 7, 7]], traced=True)
    assert [len(one.tokens) for one in found.passes] == [1, 2, 3, 4, 4]
    assert found.passes[0].before == ()
    assert found.passes[-1].tokens == found.best.tokens
    assert not any(found.passes[-1].is_new)
    (first,) = generate([[5, 6, 7, 7]], traced=True, rounds=1)
    assert first.passes == found.passes[:1]


def test_sentences_keep_to_the_limit() -> None:
    (found,) = generate([[5, 6, 7, 7]], max_length=3)
    assert len(found.best.tokens) == 2
    assert not found.best.finished


def test_reading_a_target_gives_its_distributions() -> None:
    rows = list(EditSearch(Reverser()).read([[5, 6, 7], [6, 9, 8]], [7, 6, 5]))
    assert [row.argmax(-1).tolist() for row in rows] == [[7, 8], [6, 9], [5, 6], [EOS, EOS]]
    assert all(row.exp().sum(-1).tolist() == pytest.approx([1, 1], abs=1e-4) for row in rows)


def test_results_are_reported_and_every_round_may_be_stopped() -> None:
    seen: dict[int, SearchResult] = {}
    steps: list[None] = []
    watcher = Watcher(
        before_step=lambda: steps.append(None),
        on_result=lambda number, result: seen.update({number: result}),
    )
    found = EditSearch(Reverser()).generate(SOURCES, EditSettings(), watcher=watcher)
    assert seen == {i: found[i] for i, source in enumerate(SOURCES) if source}
    assert len(steps) == 6


def test_rules_and_searches_that_do_not_fit_are_refused_with_what_works() -> None:
    with pytest.raises(UsageError, match="does not follow the rule min_length; it follows allow_"):
        generate(SOURCES, min_length=3)
    with pytest.raises(SettingsError, match=r"deletions and insertions; use decoding\.kind=edits$"):
        make_generator(BeamSettings(), Reverser())
    assert default_decoding("revisions") == EditSettings()
