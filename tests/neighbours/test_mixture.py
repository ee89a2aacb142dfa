"""The mixture against numpy over all entries; λ = 0 changes no bit; it sums to one; the tuned
settings are the best of their grid."""

import numpy as np
import pytest
import torch

from headwise.errors import SettingsError
from headwise.neighbours.mixture import mix, mix_chosen, weigh
from headwise.neighbours.search import FoundNeighbours
from headwise.neighbours.settings import MemorySettings, Mixing, NearnessWeight
from headwise.neighbours.tuning import tune
from headwise.settings import check_settings

QUERIES, FOUND, VOCABULARY = 7, 11, 23


def made(generator: torch.Generator) -> tuple[torch.Tensor, FoundNeighbours]:
    scores = torch.randn(QUERIES, VOCABULARY, generator=generator).log_softmax(-1)
    distances = torch.rand(QUERIES, FOUND, generator=generator, dtype=torch.float64) * 30
    tokens = torch.randint(0, VOCABULARY, (QUERIES, FOUND), generator=generator)
    entries = torch.arange(FOUND).expand(QUERIES, FOUND)
    return scores, FoundNeighbours(entries, tokens, distances.sort(1).values)


@pytest.mark.parametrize("weight", [0.3, 1.0, NearnessWeight(most=0.8, distance=4.0)])
def test_it_is_the_formula_and_sums_to_one(
    weight: float | NearnessWeight, generator: torch.Generator
) -> None:
    scores, found = made(generator)
    mixing = Mixing(temperature=3.0, weight=weight)
    mixed = mix(scores, found, mixing)
    votes = np.exp(-found.distances.numpy() / 3.0)
    votes /= votes.sum(1, keepdims=True)
    wanted = np.zeros((QUERIES, VOCABULARY))
    for query in range(QUERIES):
        for token, share in zip(found.tokens[query].tolist(), votes[query], strict=True):
            wanted[query, token] += share
    share = (
        0.8 * np.exp(-found.distances[:, :1].numpy() / 4.0)
        if isinstance(weight, NearnessWeight)
        else weight
    )
    wanted = share * wanted + (1 - share) * scores.exp().double().numpy()
    np.testing.assert_allclose(mixed.exp().double().numpy(), wanted, atol=1e-6)
    torch.testing.assert_close(mixed.exp().sum(1), torch.ones(QUERIES))
    gold = torch.arange(QUERIES)
    alone = mix_chosen(scores[gold, gold], gold, found, mixing)
    torch.testing.assert_close(alone, mixed[gold, gold])


def test_a_weight_of_zero_changes_no_bit(generator: torch.Generator) -> None:
    scores, found = made(generator)
    assert torch.equal(mix(scores, found, Mixing(weight=0.0)), scores)
    far = FoundNeighbours(found.entries, found.tokens, found.distances + 1e9)
    assert torch.equal(mix(scores, far, Mixing(weight=NearnessWeight(most=1, distance=1))), scores)


def test_the_chosen_settings_are_the_best_and_never_worse_than_none(
    generator: torch.Generator,
) -> None:
    scores, found = made(generator)
    for tokens in (found.tokens[:, 0], torch.randint(0, VOCABULARY, (QUERIES,))):
        own = scores.gather(1, tokens[:, None])[:, 0]
        tuning = tune(own, tokens, found)
        assert tuning.mixed <= tuning.alone
        kept = tuning.mixing.neighbours
        nearest = FoundNeighbours(*(getattr(found, name)[:, :kept] for name in
                               ("entries", "tokens", "distances")))  # fmt: skip
        again = mix_chosen(own.double(), tokens, nearest, tuning.mixing)
        assert float((-again).mean().exp()) == pytest.approx(tuning.mixed, rel=1e-9)
    assert float(weigh(found, Mixing(weight=0.5)).min()) == 0.5


@pytest.mark.parametrize(
    "wrong", [{"weight": 1.5}, {"weight": -0.1}, {"neighbours": 0}, {"temperature": 0}]
)
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        check_settings(MemorySettings, {"store": "made", **wrong})


def test_what_is_left_out_is_as_the_store_was_tuned() -> None:
    tuned = Mixing(neighbours=3, temperature=7.0, weight=0.5)
    asked = MemorySettings(store="made", weight=0.0)
    assert asked.fill_in(tuned) == Mixing(neighbours=3, temperature=7.0, weight=0.0)
    assert asked.fill_in(tuned).is_off
