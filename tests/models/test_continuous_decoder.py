"""Rows that begin, end, are replaced and left out at any time say what they say alone."""

import random

import pytest
import torch

from headwise.models.transformer_stepper import TransformerStepper
from tests.models.test_encoder_decoder import VARIANTS, VOCAB, make
from tests.models.test_transformer_stepper import at_once

FEW = ("pre_norm", "learned_gelu")


@pytest.mark.parametrize(
    "variant",
    [*FEW, *(pytest.param(name, marks=pytest.mark.prove) for name in VARIANTS if name not in FEW)],
)
def test_any_coming_and_going_equals_each_alone(variant: str, generator: torch.Generator) -> None:
    model = make(variant, generator)
    stepper = TransformerStepper(model)
    if not stepper.runs_continuously:
        assert variant not in FEW
        return
    decoder = stepper.make_continuous()
    chance = random.Random(7)
    rows: list[tuple[list[int], list[int]] | None] = []
    for _ in range(20):
        kept = [number for number, row in enumerate(rows) if row is not None]
        free = [number for number, row in enumerate(rows) if row is None]
        new = [
            [chance.randrange(4, VOCAB) for _ in range(chance.randrange(1, 8))]
            for _ in range(chance.randrange(3))
        ]
        if not kept and not new:
            continue
        if len(new) > len(free) or not kept or chance.random() < 0.2:
            decoder.arrange(kept, new)
            rows = [*(rows[number] for number in kept), *((source, []) for source in new)]
        elif new:
            decoder.replace(free[: len(new)], new)
            for place, source in zip(free, new, strict=False):
                rows[place] = (source, [])
        tokens = [chance.randrange(4, VOCAB) for _ in rows]
        found = decoder.step(torch.tensor(tokens))
        for number, row in enumerate(rows):
            if row is not None:
                row[1].append(tokens[number])
                expected = at_once(model, [row[0]], [row[1]])[0]
                torch.testing.assert_close(found[number], expected, atol=1e-5, rtol=1e-5)
                if len(row[1]) > 5 or chance.random() < 0.2:
                    decoder.forget(number)
                    rows[number] = None


def test_the_cache_forgets_what_nobody_needs(generator: torch.Generator) -> None:
    decoder = TransformerStepper(make("pre_norm", generator)).make_continuous()
    decoder.arrange([], [[4, 5], [6]])
    for step in range(70):
        decoder.step(torch.tensor([4, 5]))
        decoder.forget(step % 2)
        decoder.replace([step % 2], [[7, 8, 9]])
    assert all(cache.keys.shape[0] <= 32 and cache.length <= 3 for cache in decoder._caches)
