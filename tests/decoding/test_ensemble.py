"""Ensembles: one model repeated, the mean by hand, exhaustive enumeration, batches, attention."""

import itertools

import numpy as np
import pytest
import torch

from headwise.decoding.choices import decode
from headwise.decoding.ensemble import EnsembleStepper, EnsembleSteppers, mean_of
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.search.sampling import SamplingSettings
from headwise.decoding.stepper import capabilities_of
from headwise.decoding.stepper_search import StepperSearch

VOCAB, LIMIT = 6, 4
SEARCHES = (
    GreedySettings(max_length=7),
    BeamSettings(size=3, num_best=3, max_length=7),
    SamplingSettings(num_samples=3, max_length=7),
)


def members(improvise):
    """Three models with different preferences."""
    return [
        lambda source, prefix, k=k: improvise((*source, 100 + k), prefix, vocab=VOCAB)
        for k in range(3)
    ]


def mean_by_hand(models, source, prefix, mean):
    each = np.exp([model(source, prefix) for model in models])
    found = each.mean(0) if mean == "probabilities" else np.prod(each, 0) ** (1 / len(each))
    return np.log(found / found.sum())


@pytest.mark.parametrize("mean", ["probabilities", "logarithms"])
@pytest.mark.parametrize("settings", SEARCHES, ids=lambda one: one.kind)
def test_a_model_with_itself_is_the_model(fake, improvise, sources, settings, mean):
    alone = decode(fake(improvise), sources, settings)
    for count in (1, 3):
        ensemble = EnsembleStepper([fake(improvise) for _ in range(count)], mean=mean)
        for ours, theirs in zip(decode(ensemble, sources, settings), alone, strict=True):
            assert [one.tokens for one in ours.hypotheses] == [
                one.tokens for one in theirs.hypotheses
            ]
            assert [one.score for one in ours.hypotheses] == pytest.approx(
                [one.score for one in theirs.hypotheses]
            )


@pytest.mark.parametrize("mean", ["probabilities", "logarithms"])
def test_every_distribution_is_the_mean_by_hand(fake, improvise, mean):
    models = members(improvise)
    search = StepperSearch(EnsembleSteppers([fake(model) for model in models], mean=mean))
    target = [3, 5, 4]
    for length, scores in enumerate(search.read([(7,), (8, 9)], target)):
        for row, source in zip(scores, [(7,), (8, 9)], strict=True):
            expected = mean_by_hand(models, source, tuple(target[:length]), mean)
            assert row.numpy() == pytest.approx(expected)
            assert row.exp().sum().item() == pytest.approx(1)


@pytest.mark.parametrize("mean", ["probabilities", "logarithms"])
def test_a_beam_as_wide_as_the_tree_is_exhaustive(fake, improvise, mean):
    models = members(improvise)
    every = {}
    for length in range(LIMIT + 1):
        for tokens in itertools.product(range(3, VOCAB), repeat=length):
            whole = (*tokens, 2) if length < LIMIT else tokens
            steps = (mean_by_hand(models, (7,), whole[:i], mean)[t] for i, t in enumerate(whole))
            every[tokens] = sum(steps) / len(whole)
    best = sorted(every, key=lambda tokens: -every[tokens])[:10]
    settings = BeamSettings(size=90, num_best=10, max_length=LIMIT, stop="proven")
    ensemble = EnsembleStepper([fake(model) for model in models], mean=mean)
    found = decode(ensemble, [(7,)], settings)[0].hypotheses
    assert [one.tokens for one in found] == best
    assert [one.score for one in found] == pytest.approx([every[tokens] for tokens in best])


def test_batch_and_order_of_the_models_change_nothing(fake, improvise, sources):
    models = members(improvise)
    settings = BeamSettings(size=4, num_best=4, max_length=9)
    together = decode(EnsembleStepper([fake(one) for one in models]), sources, settings)
    for source, result in zip(sources, together, strict=True):
        turned = EnsembleStepper([fake(one) for one in reversed(models)])
        again = decode(turned, [source], settings)[0]
        assert [one.tokens for one in again.hypotheses] == [one.tokens for one in result.hypotheses]
        assert again.best.score == pytest.approx(result.best.score)


def test_what_all_models_exclude_stays_excluded():
    never = torch.tensor([[-torch.inf, 0.0]])
    maybe = torch.tensor([[0.5, 0.5]]).log()
    assert mean_of([never, never], "probabilities").tolist() == [[-torch.inf, 0.0]]
    assert mean_of([never, maybe], "probabilities")[0].exp().tolist() == pytest.approx([0.25, 0.75])
    assert mean_of([never, maybe], "logarithms")[0].exp().tolist() == [0, 1]


def test_attention_is_the_mean_if_all_show_theirs(fake, improvise):
    class Showing(fake):
        shows_attention = True

        def attention(self, state):
            return torch.full((len(state.sources), 2), self.value)

    first, second, hidden = Showing(improvise), Showing(improvise), fake(improvise)
    first.value, second.value = 0.2, 0.6
    both = EnsembleStepper([first, second])
    assert capabilities_of(both).shows_attention
    state = both.start([(7,)], width=2, max_length=3)
    assert both.attention(state).tolist() == [[pytest.approx(0.4)] * 2] * 2
    assert not capabilities_of(EnsembleStepper([first, hidden])).shows_attention
