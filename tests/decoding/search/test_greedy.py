"""Greedy search: it spells, it is greedy, and its batch does not matter."""

import numpy as np
import pytest

from headwise.decoding.choices import decode
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings


def test_spells_every_source(fake, spell, sources):
    results = decode(fake(spell), sources, GreedySettings())
    for source, result in zip(sources, results, strict=True):
        best = result.best
        assert best.tokens == source
        assert best.finished
        assert best.token_log_probabilities == pytest.approx([np.log(0.9)] * (len(source) + 1))
        assert best.log_probability == pytest.approx(sum(best.token_log_probabilities))
        assert best.score == pytest.approx(np.log(0.9))


def test_takes_the_most_probable_token_of_every_step(fake, improvise, sources):
    for source, result in zip(
        sources, decode(fake(improvise), sources, GreedySettings(max_length=9)), strict=True
    ):
        prefix: tuple[int, ...] = ()
        while len(prefix) < 9:
            scores = np.array(improvise(source, prefix))
            scores[:2] = -np.inf
            if scores.argmax() == 2:
                break
            prefix = (*prefix, int(scores.argmax()))
        assert result.best.tokens == prefix
        assert result.best.finished == (len(prefix) < 9)


def test_batch_changes_nothing_and_finished_sentences_leave(fake, improvise, sources):
    together = fake(improvise)
    settings = GreedySettings(max_length=23)
    results = decode(together, sources, settings)
    assert results == [decode(fake(improvise), [source], settings)[0] for source in sources]
    assert together.row_counts == sorted(together.row_counts, reverse=True)
    assert together.row_counts[-1] < len(sources)


def test_limit_follows_the_source(fake, sources):
    def never_ends(source, prefix):
        return np.log([0, 0, 0, 0.5, 0.5])

    settings = GreedySettings(max_length={"factor": 1.5, "extra": 2, "limit": 11})
    with np.errstate(divide="ignore"):
        results = decode(fake(never_ends), sources, settings)
    for source, result in zip(sources, results, strict=True):
        assert len(result.best.tokens) == min(11, int(1.5 * len(source)) + 2)
        assert not result.best.finished


def test_equals_a_beam_of_one_that_stops_at_once(fake, improvise, sources):
    greedy = decode(fake(improvise), sources, GreedySettings(max_length=17))
    beam = decode(fake(improvise), sources, BeamSettings(size=1, stop="filled", max_length=17))
    assert [result.best.tokens for result in greedy] == [result.best.tokens for result in beam]
    assert [r.best.score for r in greedy] == pytest.approx([r.best.score for r in beam])
