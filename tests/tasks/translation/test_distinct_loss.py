"""Learning from samples without replacement: unbiased gradients against the enumeration of all
translations of a tiny model, minimum risk from its definition, and what is reported."""

import math

import numpy as np
import pytest
import torch

from headwise.decoding.search.distinct_samples import draw_distinct_samples
from headwise.models.training_stepper import TrainingStepper
from headwise.tasks.translation.sampled_rows import read_pairs
from headwise.tasks.translation.sequence_loss import MEASURES
from headwise.training.sequence.distinct import above_the_weighted
from tests.tasks.translation.sampled_models import (
    RECURRENT,
    all_written,
    batch_of,
    build,
    letters,
    log_probability,
    sampled_recipe,
    without_dropout,
)
from tests.tasks.translation.test_sequence_loss import (
    Graded,
    assert_same_gradients,
    brute_force_risk,
    expected_reward,
    grade,
    gradients,
    sampled_loss,
)

DISTINCT = "samples: {count: 4, replacement: false}"
PAIR = ([4, 5], [5, 6])


def test_each_translation_counts_as_in_the_gradient_of_the_expected_reward() -> None:
    """The coefficient of ∇ log p(y) is p(y) (r(y) - E[r]) on average, within 4.5 standard
    errors."""
    model, repeats = build(sampled_recipe("{kind: reinforce}", *without_dropout())), 8000
    names, decode = list(all_written()), letters().target.decode
    p = np.array([math.exp(log_probability(model, PAIR[0], one).sum().item()) for one in names])
    reward = np.array([grade(decode(one), decode(PAIR[1])) for one in names])
    with TrainingStepper(model).at_present() as stepper:
        found = draw_distinct_samples(
            stepper, [PAIR[0]] * repeats, count=5, temperature=1.0, seed=2, limits=[2] * repeats
        )
    drawn = torch.tensor([[names.index(one) for one in row[1:]] for row in found.paths.written()])
    pair = torch.arange(repeats).repeat_interleave(5)
    weight, probability = (
        torch.from_numpy(np.exp(one)).flatten()
        for one in (found.log_probability - found.log_inclusion, found.log_probability)
    )
    control = torch.full((repeats,), 0.4).double()
    rewards = torch.from_numpy(reward)[drawn.flatten()]
    advantage = above_the_weighted(rewards, weight, probability, pair, control=control)
    coefficient = np.zeros((repeats, len(names)))
    coefficient[pair, drawn.flatten()] = weight * advantage
    exact = p * (reward - (p * reward).sum())
    seen = (coefficient != 0).sum(0) > 50
    error = coefficient.std(0) / math.sqrt(repeats)
    assert seen.sum() > 8
    assert (np.abs(coefficient.mean(0) - exact)[seen] / error[seen]).max() < 4.5


@pytest.mark.parametrize(
    ("baseline", "words"),
    [
        ("other_samples", without_dropout()),
        ("greedy_output", without_dropout()),
        ("none", without_dropout()),
        ("linear", without_dropout("model.reward_baseline=true")),
        ("other_samples", RECURRENT),
    ],
)
def test_gradients_are_those_of_the_enumerated_expected_reward(
    baseline: str, words: tuple[str, ...]
) -> None:
    recipe = sampled_recipe(f"{{kind: reinforce, baseline: {baseline}, {DISTINCT}}}", *words)
    model = build(recipe)
    exact = gradients(model, -expected_reward(model, PAIR[1], PAIR[0]))
    loss = sampled_loss(model, recipe, Graded())
    mean, repeats, many = [torch.zeros_like(one) for one in exact], 16, 160
    for seed in range(repeats):
        torch.manual_seed(seed)
        batch = batch_of([PAIR] * many)
        for total, one in zip(mean, gradients(model, loss.loss(batch).loss), strict=True):
            total.add_(one, alpha=1 / (repeats * many))
    names = [name for name, one in model.named_parameters() if one.requires_grad]
    kept = [number for number, name in enumerate(names) if "reward_baseline" not in name]
    ours, theirs = (torch.cat([side[i].flatten() for i in kept]) for side in (mean, exact))
    assert float(torch.cosine_similarity(ours, theirs, dim=0)) > 0.97
    assert float(ours.norm() / theirs.norm()) == pytest.approx(1, abs=0.12)


def test_minimum_risk_is_its_definition_over_distinct_samples() -> None:
    recipe = sampled_recipe(
        f"{{kind: minimum_risk, sharpness: 1, add_reference: true, {DISTINCT}}}",
        *without_dropout(),
        longest=3,
    )
    model = build(recipe)
    loss = sampled_loss(model, recipe, Graded())
    expected = brute_force_risk(model, loss, sharpness=1, add_reference=True)
    torch.manual_seed(11)
    found = loss.loss(batch_of()).loss
    assert found.item() == pytest.approx(expected.item(), abs=1e-5)
    assert_same_gradients(gradients(model, found), gradients(model, expected), within=1e-4)


@pytest.mark.parametrize("baseline", ["other_samples", "greedy_output"])
def test_a_constant_reward_teaches_nothing(baseline: str) -> None:
    reward = "reward: {kind: constant, value: 0.3}"
    recipe = sampled_recipe(f"{{kind: reinforce, baseline: {baseline}, {DISTINCT}, {reward}}}")
    model = build(recipe)
    found = sampled_loss(model, recipe).loss(batch_of())
    assert all(not one.any() for one in gradients(model, found.loss))


def test_the_reported_numbers_are_estimates_for_the_whole_distribution() -> None:
    """Mean reward and entropy of a token, though probable translations come once."""
    recipe = sampled_recipe(f"{{kind: reinforce, {DISTINCT}}}", *without_dropout())
    model = build(recipe)
    loss = sampled_loss(model, recipe, Graded())
    totals = np.zeros(2 * len(MEASURES))
    for seed in range(8):
        torch.manual_seed(seed)
        with torch.no_grad():
            found = loss.loss(batch_of([PAIR] * 150))
        assert found.measured is not None
        totals += found.measured.numpy()
        assert found.loss.item() == pytest.approx(-float(found.measured[0]) / 4, rel=1e-4)
    means = dict(zip(MEASURES, totals[::2] / totals[1::2], strict=True))
    scores = [log_probability(model, PAIR[0], one) for one in all_written()]
    p = [score.sum().exp().item() for score in scores]
    assert means["reward"] == pytest.approx(
        expected_reward(model, PAIR[1], PAIR[0]).item(), abs=0.02
    )
    entropy = -sum(p * score.sum().item() for p, score in zip(p, scores, strict=True))
    length = sum(p * len(score) for p, score in zip(p, scores, strict=True))
    assert means["entropy"] == pytest.approx(entropy / length, abs=0.03)
    assert means["distinct_samples"] == 4


def test_the_beginning_may_be_given() -> None:
    """MIXER with distinct samples, of which a short end allows few."""
    objective = f"{{kind: reinforce, annealing: {{tokens: 1, every: 10}}, {DISTINCT}}}"
    recipe = sampled_recipe(objective, *without_dropout(), longest=4)
    model = build(recipe)
    loss = sampled_loss(model, recipe, Graded())
    model.training_step.before_step(1, key="")
    pairs = read_pairs(batch_of())
    given = [loss.num_given(pair) for pair in pairs]
    for pair, number, one in zip(pairs, given, loss.draw(pairs, given), strict=True):
        assert {sample[:number] for sample in one.drawn} == {tuple(pair.target[:number])}
        assert len(set(one.drawn)) == len(one.drawn) == 4
    assert math.isfinite(loss.loss(batch_of()).loss.item())
