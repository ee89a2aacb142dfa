"""Sampling: near-zero temperature is greedy, cuts are kept, frequencies are the model's, batches
change nothing."""

import numpy as np
import pytest
import torch

from headwise.decoding.choices import decode
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.search.sampling import SamplingSettings, draw_tokens, draw_uniform


@pytest.mark.parametrize("cut", [{"temperature": 1e-5}, {"top_k": 1}, {"top_p": 1e-6}])
def test_limits_of_the_settings_are_greedy(fake, improvise, spell, sources, cut):
    settings = SamplingSettings(max_length=13, **cut)
    for model in (improvise, spell):
        greedy = decode(fake(model), sources, GreedySettings(max_length=13))
        assert decode(fake(model), sources, settings) == greedy


def test_batch_and_order_change_nothing(fake, improvise, sources):
    settings = SamplingSettings(max_length=13, num_samples=3, temperature=0.8)
    together = decode(fake(improvise), sources, settings)
    for number, source in enumerate(sources):
        assert (
            decode(fake(improvise), [source], settings, sentence_numbers=[number])[0]
            == together[number]
        )
    numbers = list(range(len(sources)))[::-1]
    assert (
        decode(fake(improvise), sources[::-1], settings, sentence_numbers=numbers)[::-1] == together
    )
    assert len({result.hypotheses for result in together}) > 1
    assert any(len(set(result.hypotheses)) > 1 for result in together)


def test_seed_and_number_name_the_draws():
    one = draw_uniform(SamplingSettings(seed=3, num_samples=2), 5, num_steps=7)
    assert (one == draw_uniform(SamplingSettings(seed=3, num_samples=2), 5, num_steps=19)[:7]).all()
    assert (one != draw_uniform(SamplingSettings(seed=4, num_samples=2), 5, num_steps=7)).any()
    assert (one != draw_uniform(SamplingSettings(seed=3, num_samples=2), 6, num_steps=7)).any()


PROBABILITIES = [0.0, 0.05, 0.4, 0.0, 0.25, 0.2, 0.1]


def _frequencies(**cut) -> np.ndarray:
    num = 20011
    scores = torch.tensor(PROBABILITIES).log().expand(num, -1)
    uniform = (torch.arange(num) + 0.5) / num  # evenly spread: frequencies are exact up to 1 / num
    tokens = draw_tokens(scores, uniform.float(), SamplingSettings(**cut))
    return np.bincount(tokens.numpy(), minlength=7) / num


def test_frequencies_are_the_probabilities():
    assert _frequencies() == pytest.approx(PROBABILITIES, abs=1e-3)


def test_temperature_raises_to_a_power():
    expected = np.array(PROBABILITIES) ** 2
    assert _frequencies(temperature=0.5) == pytest.approx(expected / expected.sum(), abs=1e-3)


def test_top_k_keeps_the_k_best():
    assert _frequencies(top_k=2) == pytest.approx(
        np.array([0, 0, 0.4, 0, 0.25, 0, 0]) / 0.65, abs=1e-3
    )
    assert _frequencies(top_k=100) == pytest.approx(PROBABILITIES, abs=1e-3)


def test_top_p_keeps_the_fewest_that_reach_p():
    # 0.4 + 0.25 = 0.65 < 0.7 <= 0.85: three tokens
    assert _frequencies(top_p=0.7) == pytest.approx(
        np.array([0, 0, 0.4, 0, 0.25, 0.2, 0]) / 0.85, abs=1e-3
    )
    # among the three best, renormalised: 0.47 + 0.29 >= 0.7
    assert _frequencies(top_k=3, top_p=0.7) == pytest.approx(
        np.array([0, 0, 0.4, 0, 0.25, 0, 0]) / 0.65, abs=1e-3
    )


@pytest.mark.parametrize("uniform", [0.0, float(np.nextafter(np.float32(1), np.float32(0)))])
def test_the_ends_of_the_interval_draw_possible_tokens(uniform):
    scores = torch.tensor([PROBABILITIES[:4]]).log()
    token = draw_tokens(scores, torch.tensor([uniform]), SamplingSettings()).item()
    assert PROBABILITIES[token] > 0


def test_log_probabilities_are_the_models_own(fake, improvise, sources):
    settings = SamplingSettings(max_length=5, temperature=3.0, top_k=4)
    for source, result in zip(sources, decode(fake(improvise), sources, settings), strict=True):
        whole = (*result.best.tokens, 2) if result.best.finished else result.best.tokens
        expected = [improvise(source, whole[:i])[token] for i, token in enumerate(whole)]
        assert result.best.token_log_probabilities == pytest.approx(expected)


def test_a_large_nucleus_is_sorted_whole(generator):
    """Vocabulary of 997 nearly even tokens: top_p = 0.9 needs far more than the tokens looked at
    first."""
    scores = torch.randn(5, 997, generator=generator) * 0.1
    scores[2] *= 100  # one row with a small nucleus among them
    scores = scores.log_softmax(-1)
    for draw in torch.rand(30, generator=generator).tolist():
        tokens = draw_tokens(scores, torch.full((5,), draw), SamplingSettings(top_p=0.9))
        for row, token in zip(scores.double().exp(), tokens.tolist(), strict=True):
            best, order = row.sort(descending=True)
            size = int((best.cumsum(0) < 0.9).sum()) + 1
            passed = best[:size].cumsum(0) > draw * best[:size].sum()
            assert order[int(passed.nonzero()[0])] == token
