"""Learning from samples: laws of sampling, of minimum risk and of REINFORCE, against the
enumeration of all translations of a tiny model."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from headwise.decoding.results import Hypothesis
from headwise.decoding.search.samples import draw_samples
from headwise.errors import UsageError
from headwise.evaluation.rewards.declaration import Reward, RewardKind, TextForm
from headwise.models.steppers import make_stepper
from headwise.models.training_stepper import TrainingStepper
from headwise.models.translation_model import TranslationModel
from headwise.tasks.translation.losses import loss_of
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.sample_scores import score_rows
from headwise.tasks.translation.sampled_rows import SampledRows, read_pairs
from headwise.tasks.translation.sequence_loss import MEASURES, SequenceLoss
from headwise.text.tokenizer import EOS
from tests.tasks.translation.sampled_models import (
    LONGEST,
    PAIRS,
    RECURRENT,
    VOCAB,
    all_written,
    batch_of,
    build,
    letters,
    log_probability,
    sampled_recipe,
    without_dropout,
)

ENGINES = {"plain": False, "recorded": True}
MODELS = {"transformer": without_dropout(), "recurrent": RECURRENT}


class Graded(RewardKind):
    """A reward that is different for every translation."""

    kind: Literal["graded"] = "graded"

    def build(self, text: TextForm) -> Reward:
        return lambda translations, references: [
            grade(own, other) for own, other in zip(translations, references, strict=True)
        ]


def grade(translation: str, reference: str) -> float:
    return math.sin(7 * len(translation) + sum(map(ord, translation)) + len(reference)) ** 2


class Broken(RewardKind):
    """A reward that is no number for one translation of a sentence."""

    kind: Literal["broken"] = "broken"

    def build(self, text: TextForm) -> Reward:
        return lambda translations, references: [math.nan] * len(translations)


def sampled_loss(
    model: TranslationModel, recipe: TranslationRecipe, reward: RewardKind | None = None
) -> SequenceLoss:
    objective: Any = recipe.training.objective
    if reward is not None:
        objective = objective.model_copy(update={"reward": reward})
    training = recipe.training.model_copy(update={"objective": objective})
    loss = loss_of(recipe.model_copy(update={"training": training}), model, tokenizers=letters())
    assert isinstance(loss, SequenceLoss)
    return loss


def draw(
    model: TranslationModel,
    sources: Sequence[Sequence[int]],
    *,
    static: bool = False,
    **settings: Any,
) -> Any:
    chosen = {"count": 5, "temperature": 1.0, "seed": 1, "limits": [LONGEST] * len(sources)}
    with TrainingStepper(model, static=static).at_present() as stepper:
        return draw_samples(stepper, sources, **{**chosen, **settings}).hypotheses()


def written(hypothesis: Hypothesis) -> tuple[int, ...]:
    return (*hypothesis.tokens, EOS) if hypothesis.finished else hypothesis.tokens


def gradients(model: TranslationModel, loss: Tensor) -> list[Tensor]:
    parameters = [one for one in model.parameters() if one.requires_grad]
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    return [
        torch.zeros_like(own) if one is None else one
        for own, one in zip(parameters, found, strict=True)
    ]


def assert_same_gradients(ours: list[Tensor], theirs: list[Tensor], *, within: float) -> None:
    scale = max(float(one.abs().max()) for one in theirs)
    assert scale > 0
    for own, other in zip(ours, theirs, strict=True):
        assert float((own - other).abs().max()) <= within * scale


@pytest.mark.parametrize("words", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("given", [0, 2])
@pytest.mark.parametrize("static", ENGINES.values(), ids=ENGINES)
def test_log_probabilities_of_samples_are_those_of_the_training_forward(
    words: tuple[str, ...], given: int, *, static: bool
) -> None:
    """Each sample is conditioned on its own prefix."""
    model = build(sampled_recipe("{kind: reinforce}", *words))
    pairs = read_pairs(batch_of())
    assert [(one.source, one.target) for one in pairs] == sorted(PAIRS, key=order_of(pairs))
    prefixes = [pair.target[:given] for pair in pairs]
    sources = [pair.source for pair in pairs]
    drawn = draw(model, sources, static=static, limits=[6] * len(pairs), prefixes=prefixes)
    hypotheses: list[list[Hypothesis]] = [
        list({written(a): a for a in one}.values()) for one in drawn
    ]
    distinct = [[written(one) for one in here] for here in hypotheses]
    rows = SampledRows.of(distinct, [len(one) for one in prefixes], torch.device("cpu"))
    groups = list(score_rows(model, batch_of(), rows, chunk_size=None))
    for group in groups:
        for number, row in enumerate(group.rows.tolist()):
            found = hypotheses[int(rows.pair[row])][int(rows.slot[row])]
            count = len(found.token_log_probabilities)
            scored = group.log_probability[number, :count].tolist()
            assert scored == pytest.approx(list(found.token_log_probabilities), abs=1e-5)
            assert int(group.is_free[number].sum()) == count - len(prefixes[int(rows.pair[row])])
    one = drawn[0][3]
    alone = log_probability(model, sources[0], written(one))
    assert alone.tolist() == pytest.approx(list(one.token_log_probabilities), abs=1e-5)


def order_of(pairs: Sequence[Any]) -> Any:
    places = {tuple(pair.source): number for number, pair in enumerate(pairs)}
    return lambda pair: places[tuple(pair[0])]


@pytest.mark.parametrize("words", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("static", ENGINES.values(), ids=ENGINES)
def test_samples_have_the_distribution_of_the_model(
    words: tuple[str, ...], *, static: bool
) -> None:
    """Pearson's statistic over all 21 translations of up to two tokens, against the enumeration."""
    model = build(sampled_recipe("{kind: reinforce}", *words))
    count, found = 3000, Counter[tuple[int, ...]]()
    for seed in range(3):
        drawn = draw(model, [[4, 5]], static=static, count=1000, seed=seed)
        found.update(map(written, drawn[0][1:]))
    expected = {
        one: count * math.exp(log_probability(model, [4, 5], one).sum().item())
        for one in all_written()
    }
    assert sum(expected.values()) == pytest.approx(count, rel=1e-5)
    assert found.keys() <= expected.keys()
    statistic = sum((found[one] - number) ** 2 / number for one, number in expected.items())
    degrees = len(expected) - 1
    assert len(expected) == 21
    # Beyond three standard deviations in one of a thousand draws; the seed is fixed.
    assert statistic < degrees + 3.5 * math.sqrt(2 * degrees)


def test_the_first_row_is_greedy_search_and_a_low_temperature_comes_near_it() -> None:
    model = build(sampled_recipe("{kind: reinforce}", *without_dropout()))
    sources = [pair[0] for pair in PAIRS]
    limits = [4] * len(sources)
    plain, sharp = (
        draw(model, sources, temperature=one, count=50, limits=limits) for one in (1.0, 0.01)
    )
    for source, (greedy, *samples), others in zip(sources, sharp, plain, strict=True):
        best: list[int] = []
        while len(best) < 4 and EOS not in best:
            options = {
                one: log_probability(model, source, [*best, one])[-1].item()
                for one in range(EOS, VOCAB)
            }
            best.append(max(options, key=options.__getitem__))
        assert written(greedy) == tuple(best)
        shares = [
            sum(written(one) == written(greedy) for one in drawn) for drawn in (others[1:], samples)
        ]
        assert shares[0] < 35 < shares[1]


def brute_force_risk(
    model: TranslationModel, loss: SequenceLoss, *, sharpness: float, add_reference: bool
) -> Tensor:
    """Minimum risk from the definition, with the samples that the loss will draw."""
    torch.manual_seed(11)
    pairs = read_pairs(batch_of())
    samples = loss.draw(pairs, [0] * len(pairs))
    total = torch.zeros(())
    for pair, here in zip(pairs, samples, strict=True):
        candidates = set(here.counts) | ({(*pair.target, EOS)} if add_reference else set())
        rewards = torch.tensor([here.rewards[one] for one in candidates])
        scores = torch.stack(
            [sharpness * log_probability(model, pair.source, one).sum() for one in candidates]
        )
        total = total - (scores.exp() / scores.exp().sum() * rewards).sum()
    return total


@pytest.mark.parametrize("words", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(("sharpness", "add_reference"), [(0.005, False), (1, True)])
def test_minimum_risk_is_its_definition(
    words: tuple[str, ...], sharpness: float, add_reference: bool
) -> None:
    objective = (
        f"{{kind: minimum_risk, sharpness: {sharpness}, add_reference: {add_reference}, "
        "samples: {count: 6}}"
    )
    recipe = sampled_recipe(objective, *words, longest=3)
    model = build(recipe)
    loss = sampled_loss(model, recipe, Graded())
    expected = brute_force_risk(model, loss, sharpness=sharpness, add_reference=add_reference)
    torch.manual_seed(11)
    found = loss.loss(batch_of()).loss
    assert found.item() == pytest.approx(expected.item(), abs=1e-5)
    assert_same_gradients(gradients(model, found), gradients(model, expected), within=1e-4)


def expected_reward(model: TranslationModel, reference: list[int], source: list[int]) -> Tensor:
    decode = letters().target.decode
    total = torch.zeros(())
    for one in all_written():
        probability = log_probability(model, source, one).sum().exp()
        total = total + probability * grade(decode(one), decode(reference))
    return total


@pytest.mark.parametrize(
    "objective",
    [
        "{kind: minimum_risk, sharpness: 1, samples: {count: 256}}",
        "{kind: reinforce, baseline: greedy_output, samples: {count: 256}}",
        "{kind: reinforce, baseline: other_samples, samples: {count: 256}}",
        "{kind: reinforce, baseline: none, samples: {count: 256}}",
        "{kind: reinforce, baseline: linear, samples: {count: 256}}",
    ],
)
def test_gradients_are_those_of_the_enumerated_expected_reward(objective: str) -> None:
    """Many samples: minimum risk sees all translations that matter, the others estimate."""
    is_linear = "linear" in objective
    words = without_dropout(*(["model.reward_baseline=true"] * is_linear))
    recipe = sampled_recipe(objective, *words)
    model = build(recipe)
    pair = ([4, 5], [5, 6])
    exact = gradients(model, -expected_reward(model, pair[1], pair[0]))
    loss = sampled_loss(model, recipe, Graded())
    mean = [torch.zeros_like(one) for one in exact]
    repeats = 12
    for seed in range(repeats):
        torch.manual_seed(seed)
        found = gradients(model, loss.loss(batch_of([pair])).loss)
        for total, one in zip(mean, found, strict=True):
            total.add_(one, alpha=1 / repeats)
    names = [name for name, one in model.named_parameters() if one.requires_grad]
    kept = [number for number, name in enumerate(names) if "reward_baseline" not in name]
    ours, theirs = (torch.cat([side[i].flatten() for i in kept]) for side in (mean, exact))
    assert float(torch.cosine_similarity(ours, theirs, dim=0)) > 0.97
    assert float(ours.norm() / theirs.norm()) == pytest.approx(1, abs=0.12)


@pytest.mark.parametrize("value", [1.0, 0.3])
@pytest.mark.parametrize(
    "objective",
    [
        "{kind: minimum_risk, samples: {count: 7}",
        "{kind: reinforce, baseline: other_samples, samples: {count: 7}",
        "{kind: reinforce, baseline: greedy_output, samples: {count: 7}",
    ],
)
def test_a_constant_reward_teaches_nothing(objective: str, value: float) -> None:
    recipe = sampled_recipe(f"{objective}, reward: {{kind: constant, value: {value}}}}}")
    model = build(recipe)
    found = sampled_loss(model, recipe).loss(batch_of())
    assert found.loss.item() == pytest.approx(-3 * value)
    assert all(not one.any() for one in gradients(model, found.loss))


def test_the_reported_numbers() -> None:
    recipe = sampled_recipe("{kind: reinforce, samples: {count: 4}}", *without_dropout())
    model = build(recipe)
    loss = sampled_loss(model, recipe, Graded())
    torch.manual_seed(5)
    found = loss.loss(batch_of())
    assert model.training
    torch.manual_seed(5)
    pairs = read_pairs(batch_of())
    samples = loss.draw(pairs, [0] * 3)
    assert found.measured is not None
    sums = found.measured.tolist()
    means = dict(
        zip(MEASURES, (a / b for a, b in zip(sums[::2], sums[1::2], strict=True)), strict=True)
    )
    assert means["reward"] == pytest.approx(sum(one.mean for one in samples) / 3)
    assert found.loss.item() == pytest.approx(-3 * means["reward"], rel=1e-5)
    assert means["distinct_samples"] == sum(len(one.counts) for one in samples) / 3
    greedy = [one.rewards[one.greedy] for one in samples]
    assert means["reward_of_greedy"] == pytest.approx(sum(greedy) / 3)
    drawn = [(pair, one) for pair, here in zip(pairs, samples, strict=True) for one in here.drawn]
    total = sum(log_probability(model, pair.source, one).sum().item() for pair, one in drawn)
    assert means["entropy"] == pytest.approx(-total / sum(len(one) for _, one in drawn), rel=1e-4)
    plain = loss_of(sampled_recipe("{kind: cross_entropy}"), model).loss(batch_of())
    assert found.negative_log_likelihood.item() == pytest.approx(
        plain.negative_log_likelihood.item()
    )
    model.eval()
    assert loss.loss(batch_of()).loss.item() == pytest.approx(plain.loss.item())


def test_the_likelihood_is_added() -> None:
    weighted = "{kind: minimum_risk, likelihood_weight: 0.5, label_smoothing: 0"
    recipe = sampled_recipe(weighted + ", reward: {kind: constant, value: 0}}", *without_dropout())
    model = build(recipe)
    found = sampled_loss(model, recipe).loss(batch_of())
    assert found.loss.item() == pytest.approx(0.5 * found.negative_log_likelihood.item(), rel=1e-5)


def test_annealing_gives_the_beginning_and_learns_it_by_cross_entropy() -> None:
    objective = (
        "{kind: reinforce, baseline: none, annealing: {tokens: 1, every: 10}, label_smoothing: 0, "
        "reward: {kind: constant, value: 0}, samples: {count: 3}}"
    )
    recipe = sampled_recipe(objective, *without_dropout(), longest=4)
    model = build(recipe)
    loss = sampled_loss(model, recipe)
    pairs = read_pairs(batch_of())
    for step, free in ((1, 1), (10, 1), (11, 2), (100, 10)):
        model.training_step.before_step(step, key="")
        given = [loss.num_given(pair) for pair in pairs]
        assert given == [max(0, len(pair.target) + 1 - free) for pair in pairs]
        for pair, number, one in zip(pairs, given, loss.draw(pairs, given), strict=True):
            starts = {sample[:number] for sample in one.drawn}
            assert starts == {tuple(pair.target[:number])}
        expected = sum(
            -log_of_all(model, pair.source, pair.target[:number])
            for pair, number in zip(pairs, given, strict=True)
        )
        assert loss.loss(batch_of()).loss.item() == pytest.approx(expected, abs=1e-4)


def log_of_all(model: TranslationModel, source: list[int], tokens: list[int]) -> float:
    """Under all outputs, padding and the beginning too, as cross-entropy has it."""
    if not tokens:
        return 0.0
    recipe = sampled_recipe("{kind: cross_entropy, label_smoothing: 0}")
    loss = loss_of(recipe, model)
    whole = loss.loss(batch_of([(source, tokens)])).loss.item()
    end = log_end(model, source, tokens)
    return -whole - end


def log_end(model: TranslationModel, source: list[int], tokens: list[int]) -> float:
    stepper = make_stepper(model)
    state = stepper.start([source], width=1, max_length=len(tokens) + 1)
    for token in (1, *tokens):
        scores, state = stepper.step(state, torch.tensor([token]))
    model.train()
    return scores[0, EOS].item()


@pytest.mark.parametrize("kind", ["minimum_risk", "reinforce"])
def test_a_reward_that_is_no_number_is_refused_with_its_sentences(kind: str) -> None:
    recipe = sampled_recipe(f"{{kind: {kind}}}")
    loss = sampled_loss(build(recipe), recipe, Broken())
    with pytest.raises(UsageError, match=r"is nan, but .* source '.*', translation '.*', ref"):
        loss.loss(batch_of())


def test_lower_precision_keeps_the_gradients() -> None:
    """Passes without a gradient come first, under the same autocast."""
    recipe = sampled_recipe("{kind: reinforce}", *without_dropout())
    model = build(recipe)
    loss = sampled_loss(model, recipe, Graded())
    with torch.autocast("cpu", torch.bfloat16):
        found = loss.loss(batch_of()).loss
    unused = [
        name
        for (name, _), one in zip(
            model.named_parameters(),
            torch.autograd.grad(found, list(model.parameters()), allow_unused=True),
            strict=True,
        )
        if one is None or not one.any()
    ]
    assert [name for name in unused if not name.endswith("key.bias")] == []
