"""Sentences that come and leave at any step find what each finds by itself with the plain
engine."""

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch

from headwise.decoding.engines.continuous import run_continuously
from headwise.decoding.generator import Arrival
from headwise.decoding.results import SearchResult
from headwise.decoding.rules.constraints import SentenceRules
from headwise.decoding.rules.length_limit import LengthLimit
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.stepper_search import StepperSearch, decode
from headwise.errors import UsageError
from headwise.models.steppers import ModelSteppers
from headwise.models.transformer_stepper import TransformerStepper
from tests.models.test_encoder_decoder import VOCAB, make

LIMIT = LengthLimit(factor=1.5, extra=3, limit=11)
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "long enough": {"min_length": 3},
    "ended at the limit": {"at_limit": "end"},
    "nothing unknown": {"allow_unknown": False},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_it_finds_what_greedy_search_finds(name: str, generator: torch.Generator) -> None:
    stepper = TransformerStepper(make("pre_norm", generator))
    settings = GreedySettings(max_length=LIMIT, **SETTINGS[name])
    chance = random.Random(7)
    sources = [
        [chance.randrange(4, VOCAB) for _ in range(chance.randrange(1, 8))] for _ in range(13)
    ]
    prefixes = [tuple(chance.choices(range(3, VOCAB), k=chance.choice((0, 0, 2)))) for _ in sources]
    found: dict[int, SearchResult] = {}
    waiting = list(range(len(sources)))

    def come(count: int) -> Sequence[Arrival]:
        here = [waiting.pop(0) for _ in range(min(count, len(waiting)))]
        return [Arrival(sources[n], partial(found.__setitem__, n), prefixes[n]) for n in here]

    run_continuously(
        stepper.make_continuous(),
        come(3),
        settings,
        more=lambda alive: come(chance.choice((0, 1, 4)) if alive else 1),
    )
    for number, source in enumerate(sources):
        rules = [SentenceRules(prefix=prefixes[number])]
        expected = decode(stepper, [source], settings, phrases=rules)[0].best
        best = found[number].best
        assert (best.tokens, best.finished) == (expected.tokens, expected.finished)
        assert best.token_log_probabilities == pytest.approx(
            expected.token_log_probabilities, abs=1e-5
        )
        assert best.score == pytest.approx(expected.score, abs=1e-5)


def test_who_leaves_is_dropped_and_nobody_is_told(generator: torch.Generator) -> None:
    rows = TransformerStepper(make("pre_norm", generator)).make_continuous()
    told: list[SearchResult] = []
    steps: list[int] = []
    gone = Arrival([4, 5], told.append, is_over=lambda: len(steps) > 2)

    def more(alive: int) -> list[Arrival]:
        steps.append(alive)
        return []

    run_continuously(rows, [gone], GreedySettings(max_length=50, min_length=40), more=more)
    assert not told
    assert len(steps) == 3


def test_only_greedy_search_without_histories_runs_continuously(
    generator: torch.Generator,
) -> None:
    search = StepperSearch(ModelSteppers(make("pre_norm", generator)))
    assert search.can_join(GreedySettings())
    assert not search.can_join(GreedySettings(no_repeat_ngrams=3))
    assert not search.can_join(GreedySettings(forbidden=("a",)))
    assert not search.can_join(BeamSettings())


def test_a_prefix_longer_than_the_limit_is_refused(generator: torch.Generator) -> None:
    rows = TransformerStepper(make("pre_norm", generator)).make_continuous()
    with pytest.raises(UsageError, match="max_length is 2"):
        run_continuously(
            rows,
            [Arrival([4], lambda _: None, (5, 6, 7))],
            GreedySettings(max_length=2),
            more=lambda _: [],
        )
