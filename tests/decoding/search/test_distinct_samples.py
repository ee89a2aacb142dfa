"""Samples without replacement: distinct, distributed as sequential draws without replacement, with
the log-probabilities of whole targets, and weights that estimate without bias."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from headwise.decoding.search.distinct_samples import (
    DistinctSamples,
    condition_on_maximum,
    draw_distinct_samples,
)
from headwise.models.training_stepper import TrainingStepper
from headwise.models.translation_model import TranslationModel
from headwise.text.tokenizer import EOS
from tests.tasks.translation.sampled_models import (
    LONGEST,
    RECURRENT,
    VOCAB,
    all_written,
    build,
    log_probability,
    sampled_recipe,
    without_dropout,
)

SOURCE = [4, 5]
Words = tuple[int, ...]


@pytest.fixture(scope="module")
def model() -> TranslationModel:
    return build(sampled_recipe("{kind: reinforce}", *without_dropout()))


def draw(
    model: TranslationModel, sources: Sequence[Sequence[int]], **settings: Any
) -> DistinctSamples:
    chosen = {"count": 3, "temperature": 1.0, "seed": 1, "limits": [LONGEST] * len(sources)}
    with TrainingStepper(model, static=settings.pop("static", False)).at_present() as stepper:
        return draw_distinct_samples(stepper, sources, **{**chosen, **settings})


def samples_of(found: DistinctSamples) -> list[list[Words]]:
    """Without the greedy output, and without rows that hold none."""
    return [
        [one for one, total in zip(paths[1:], totals, strict=True) if total > -math.inf]
        for paths, totals in zip(found.paths.written(), found.log_probability, strict=True)
    ]


def probabilities(model: TranslationModel, temperature: float = 1.0) -> dict[Words, float]:
    """Of all translations, each token's distribution sharpened by the temperature."""
    found = {}
    for one in all_written():
        total = 0.0
        for place, token in enumerate(one):
            options = torch.stack(
                [
                    log_probability(model, SOURCE, [*one[:place], word])[-1]
                    for word in range(2, VOCAB)
                ]
            )
            total += (options / temperature).log_softmax(0)[token - 2].item()
        found[one] = math.exp(total)
    return found


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_ordered_draws_are_those_of_an_urn(model: TranslationModel, temperature: float) -> None:
    """First y, then y' among the others: p(y) p(y') / (1 - p(y)), for all pairs of 21."""
    p, count, found = probabilities(model, temperature), 0, Counter[tuple[Words, Words]]()
    assert sum(p.values()) == pytest.approx(1, abs=1e-6)
    for seed in range(4):
        drawn = draw(model, [SOURCE] * 1500, count=2, seed=seed, temperature=temperature)
        found.update((first, second) for first, second in samples_of(drawn))
        count += 1500
    expected = {(a, b): count * p[a] * p[b] / (1 - p[a]) for a in p for b in p if a != b}
    assert found.keys() <= expected.keys()
    common = [pair for pair, number in expected.items() if number >= 5]
    cells = [(found[pair], expected[pair]) for pair in common]
    cells.append((count - sum(a for a, _ in cells), count - sum(b for _, b in cells)))
    statistic = sum((a - b) ** 2 / b for a, b in cells)
    degrees = len(cells) - 1
    assert degrees > 40
    assert abs(statistic - degrees) < 3.5 * math.sqrt(2 * degrees)


@pytest.mark.parametrize("words", [without_dropout(), RECURRENT], ids=["transformer", "recurrent"])
@pytest.mark.parametrize("static", [False, True])
def test_samples_are_distinct_and_have_the_log_probabilities_of_whole_targets(
    words: tuple[str, ...], *, static: bool
) -> None:
    """Of sources of several lengths, with beginnings that are given, and limits of their own."""
    model = build(sampled_recipe("{kind: reinforce}", *words))
    sources, prefixes = [[4, 5], [6], [5, 6, 4]], [[], [4], [6, 6]]
    found = draw(
        model, sources, count=5, limits=[3, 5, 4], prefixes=prefixes, static=static, seed=3
    )
    for number, (source, prefix, here) in enumerate(
        zip(sources, prefixes, samples_of(found), strict=True)
    ):
        assert len(set(here)) == len(here) == 5
        for row, one in enumerate(here):
            assert list(one[: len(prefix)]) == prefix
            values = log_probability(model, source, one).tolist()
            given = found.paths.values[number, row + 1, : len(one)]
            assert given.tolist() == pytest.approx(values, abs=1e-5)
            free = sum(values[len(prefix) :])
            assert found.log_probability[number, row] == pytest.approx(free, abs=1e-5)
            assert one[-1] == EOS or len(one) == [3, 5, 4][number]
    greedy = [paths[0] for paths in found.paths.written()]
    for source, prefix, one in zip(sources, prefixes, greedy, strict=True):
        for place in range(len(prefix), len(one)):
            options = [
                log_probability(model, source, [*one[:place], w])[-1] for w in range(2, VOCAB)
            ]
            assert one[place] == 2 + int(torch.stack(options).argmax())


def test_where_there_are_few_translations_all_are_found(model: TranslationModel) -> None:
    """21 of them, each certain to be there, beside a source with a limit of its own."""
    found = draw(model, [SOURCE, SOURCE], count=30, limits=[2, 1])
    all_of, short = samples_of(found)
    assert sorted(all_of) == sorted(all_written())
    assert sorted(short) == sorted((word,) for word in range(2, VOCAB))
    assert np.exp(found.log_probability[0]).sum() == pytest.approx(1, abs=1e-6)
    assert (found.log_inclusion[0, :21] == 0).all()


@pytest.mark.parametrize("count", [5, 8])
def test_weighted_samples_estimate_every_expectation(model: TranslationModel, count: int) -> None:
    """The mean of 1[y drawn] p / q is p, and that of pairs is p p': within 4.5 standard errors.

    With fewer than four samples the products have no finite variance."""
    p, repeats = probabilities(model), 6000
    names = list(p)
    weight = np.zeros((repeats, len(names)))
    found = draw(model, [SOURCE] * repeats, count=count, seed=5)
    ratio = np.exp(found.log_probability - found.log_inclusion)
    for number, here in enumerate(samples_of(found)):
        for row, one in enumerate(here):
            weight[number, names.index(one)] = ratio[number, row]
    exact = np.array([p[one] for one in names])
    both = weight[:, :, None] * weight[:, None]
    away = ~np.eye(len(names), dtype=bool)
    for estimates, truth in (
        (weight, exact),
        (both[:, away], np.outer(exact, exact)[away]),
    ):
        seen = (estimates > 0).sum(0) > 50
        error = estimates.std(0) / math.sqrt(repeats)
        assert seen.sum() > 5
        assert (np.abs(estimates.mean(0) - truth)[seen] / error[seen]).max() < 4.5


def test_draws_are_a_function_of_the_seed(model: TranslationModel) -> None:
    one, same, other = (samples_of(draw(model, [SOURCE] * 5, seed=seed)) for seed in (4, 4, 5))
    assert one == same != other


def test_keys_below_a_maximum_keep_their_order_and_their_law() -> None:
    """Conditional keys: the largest is the maximum, impossible ones stay so, the formula holds."""
    generator = torch.Generator().manual_seed(2)
    key = torch.randn(4, 3, 9, generator=generator).double()
    key[0, 0, 4] = -math.inf
    maximum = torch.randn(4, 3, generator=generator).double()
    maximum[1, 1] = -math.inf
    moved = condition_on_maximum(key, maximum)
    assert torch.equal(moved.amax(-1), maximum)
    assert torch.equal(moved[2, 2].argsort(), key[2, 2].argsort())
    assert moved[0, 0, 4] == -math.inf
    assert (moved[1, 1] == -math.inf).all()
    plain = -(
        (-maximum[..., None]).exp() - (-key.amax(-1, keepdim=True)).exp() + (-key).exp()
    ).log()
    torch.testing.assert_close(moved[2], plain[2])
    far = condition_on_maximum(key * 1e4, maximum + 1e3)
    assert not far.isnan().any()
