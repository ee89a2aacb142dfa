"""Beam search: a hand-worked tree, exhaustive enumeration, batches that change nothing, traces,
coverage."""

import itertools
import math

import numpy as np
import pytest
import torch

from headwise.decoding.choices import decode
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.errors import SettingsError, UsageError
from headwise.settings import check_settings

A, B, C = 3, 4, 5
NEVER = 1e-30

# log p(next | prefix) of a tree in which the likelier first token leads to the worse sentence:
#   A (0.6) then A, B or C with 0.3 / 0.3 / 0.4      best through A: 0.6 * 0.4 = 0.24
#   B (0.4) then C with 0.9                          best through B: 0.4 * 0.9 = 0.36
TREE = {(): {A: 0.6, B: 0.4}, (A,): {A: 0.3, B: 0.3, C: 0.4}, (B,): {A: 0.05, B: 0.05, C: 0.9}}


def climb(source, prefix):
    choices = TREE.get(prefix, {2: 1.0})
    return np.log([choices.get(token, NEVER) for token in range(7)])


def test_beam_of_two_finds_what_greed_misses(fake):
    greedy = decode(fake(climb), [(9,)], GreedySettings())[0].best
    beam = decode(fake(climb), [(9,)], BeamSettings(size=2, num_best=2))[0]
    assert greedy.tokens == (A, C)
    assert greedy.log_probability == pytest.approx(math.log(0.24))
    assert beam.best.tokens == (B, C)
    assert beam.best.log_probability == pytest.approx(math.log(0.36))
    assert beam.best.score == pytest.approx(math.log(0.36) / 3)
    assert beam.hypotheses[1].tokens == (A, C)


def test_spells_every_source(fake, spell, sources):
    for source, result in zip(
        sources, decode(fake(spell), sources, BeamSettings(size=3)), strict=True
    ):
        assert result.best.tokens == source
        assert result.best.token_log_probabilities == pytest.approx(
            [np.log(0.9)] * (len(source) + 1)
        )


@pytest.mark.parametrize(
    "penalty", [{"kind": "none"}, {"kind": "average", "alpha": 0.7}, {"kind": "wu", "alpha": 0.9}]
)
def test_a_beam_as_wide_as_the_tree_is_exhaustive(fake, improvise, penalty):
    vocab, limit = 6, 4

    def model(source, prefix):
        return improvise(source, prefix, vocab=vocab)

    def score(total, length):
        if penalty["kind"] == "none":
            return total
        return total / (length**0.7 if penalty["kind"] == "average" else ((5 + length) / 6) ** 0.9)

    every = {}
    for length in range(limit + 1):
        for tokens in itertools.product(range(3, vocab), repeat=length):
            whole = (*tokens, 2) if length < limit else tokens
            total = sum(model((7,), whole[:i])[token] for i, token in enumerate(whole))
            every[tokens] = score(total, len(whole))
    best = sorted(every, key=lambda tokens: -every[tokens])[:10]
    settings = BeamSettings(
        size=90, num_best=10, max_length=limit, length_penalty=penalty, stop="proven"
    )
    found = decode(fake(model), [(7,)], settings)[0].hypotheses
    assert [hypothesis.tokens for hypothesis in found] == best
    assert [hypothesis.score for hypothesis in found] == pytest.approx(
        [every[tokens] for tokens in best]
    )
    assert [hypothesis.finished for hypothesis in found] == [len(tokens) < limit for tokens in best]


@pytest.mark.parametrize("stop", ["likely", "filled", "proven"])
def test_batch_changes_nothing_and_finished_sentences_leave(fake, improvise, sources, stop):
    settings = BeamSettings(
        size=4, num_best=4, stop=stop, max_length={"factor": 2.0, "extra": 5, "limit": 17}
    )
    together = fake(improvise)
    results = decode(together, sources, settings)
    assert results == [decode(fake(improvise), [source], settings)[0] for source in sources]
    assert results == decode(fake(improvise), sources[::-1], settings)[::-1]
    assert together.row_counts[-1] < together.row_counts[0]


def test_scores_are_the_sums_they_claim(fake, improvise, sources):
    settings = BeamSettings(
        size=5, num_best=5, max_length=7, length_penalty={"kind": "wu", "alpha": 0.6}
    )
    for source, result in zip(sources, decode(fake(improvise), sources, settings), strict=True):
        assert [h.score for h in result.hypotheses] == sorted(
            (h.score for h in result.hypotheses), reverse=True
        )
        assert len({h.tokens for h in result.hypotheses}) == len(result.hypotheses)
        for found in result.hypotheses:
            whole = (*found.tokens, 2) if found.finished else found.tokens
            values = [improvise(source, whole[:i])[token] for i, token in enumerate(whole)]
            assert found.token_log_probabilities == pytest.approx(values)
            assert found.log_probability == pytest.approx(sum(values))
            assert found.score == pytest.approx(sum(values) / ((5 + len(whole)) / 6) ** 0.6)


def test_rows_that_stay_are_not_reordered(fake, spell):
    stepper = fake(spell)
    decode(stepper, [(5, 6, 7, 8, 9)], BeamSettings(size=1, stop="filled"))
    assert stepper.num_reorders == 0


def test_single_precision_and_double_agree(fake, improvise, sources):
    single = decode(fake(improvise, torch.float32), sources, BeamSettings(max_length=9))
    double = decode(fake(improvise), sources, BeamSettings(max_length=9))
    assert [r.best.tokens for r in single] == [r.best.tokens for r in double]
    assert [r.best.score for r in single] == pytest.approx([r.best.score for r in double], rel=1e-5)


def test_trace_leads_to_the_best_hypothesis(fake, improvise, sources):
    settings = BeamSettings(size=3, num_best=3, max_length=8)
    results = decode(fake(improvise), sources, settings, traced=True)
    untraced = decode(fake(improvise), sources, settings)
    assert [r.hypotheses for r in results] == [r.hypotheses for r in untraced]
    for result in results:
        steps = result.trace.steps
        ends = {}
        for number, step in enumerate(steps):
            assert len(step) <= 6
            assert [c.total for c in step] == sorted((c.total for c in step), reverse=True)
            assert {c.slot for c in step if c.fate == "kept"} <= {0, 1, 2}
            assert all((c.fate == "kept") == (c.slot is not None) for c in step)
            for candidate in step:
                if candidate.fate == "finished":
                    tokens, parent = [candidate.token], candidate.parent
                    for earlier in reversed(steps[:number]):
                        chosen = next(c for c in earlier if c.slot == parent)
                        tokens.append(chosen.token)
                        parent = chosen.parent
                    ends[tuple(token for token in reversed(tokens) if token != 2)] = candidate.score
        assert max(ends, key=ends.get) == result.best.tokens
        assert ends[result.best.tokens] == pytest.approx(result.best.score)


def test_only_beams_are_traced(fake, spell):
    with pytest.raises(UsageError, match=r"use decoding.kind=beam"):
        decode(fake(spell), [(5,)], GreedySettings(), traced=True)


def _make_attending(fake):
    class Attending(fake):
        """Two ways to translate the two-token source (5, 6): by 7 7, which looks twice at 5, or by
        7 8, which looks at each."""

        shows_attention = True

        def attention(self, state):
            looks = {
                (): [0.9, 0.1, 0.0],
                (7,): [0.5, 0.5, 0.0],
                (7, 7): [0.9, 0.1, 0.0],
                (7, 8): [0.1, 0.9, 0.0],
            }
            nothing = [0.0, 0.0, 1.0]
            return torch.tensor(
                [looks.get(prefix, nothing) for prefix in state.prefixes], dtype=torch.float64
            )

    def model(source, prefix):
        tree = {(): {7: 1.0}, (7,): {7: 0.55, 8: 0.45}}
        return np.log([tree.get(prefix, {2: 1.0}).get(token, NEVER) for token in range(11)])

    return Attending(model)


def test_coverage_penalty_prefers_the_hypothesis_that_translates_everything(fake):
    plain = decode(_make_attending(fake), [(5, 6)], BeamSettings(size=2))[0].best
    covered = decode(_make_attending(fake), [(5, 6)], BeamSettings(size=2, coverage_penalty=1.0))[
        0
    ].best
    assert plain.tokens == (7, 7)
    assert covered.tokens == (7, 8)
    # attention received by the two source tokens: 0.9 + 0.5 + 0.1 and 0.1 + 0.5 + 0.9, both above
    # one: no penalty
    assert covered.score == pytest.approx(math.log(0.45) / 3)


def test_coverage_needs_attention(fake, spell):
    with pytest.raises(
        UsageError, match=r"does not show its attention; set decoding.coverage_penalty=0"
    ):
        decode(fake(spell), [(5,)], BeamSettings(coverage_penalty=0.2))


def test_more_best_than_beams_is_refused():
    with pytest.raises(SettingsError, match=r"num_best \(6\) cannot exceed the beam's size \(5\)"):
        check_settings(BeamSettings, {"num_best": 6})
    with pytest.raises(SettingsError, match=r"num_best.*1024"):
        check_settings(BeamSettings, {"num_best": 100_000_000})
