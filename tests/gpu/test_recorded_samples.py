"""Samples of recorded steps are those of plain ones, update after update and size after size.

On a GPU the sums of both differ by rounding, so a few samples may, too.
"""

import numpy as np
import pytest
import torch

from headwise.decoding.search.samples import draw_samples
from headwise.models.training_stepper import TrainingStepper
from headwise.randomness import torch_generator
from tests.models.test_encoder_decoder import VOCAB, make

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
]


@pytest.mark.parametrize("device", DEVICES)
def test_recorded_steps_read_the_weights_of_the_moment(device: str) -> None:
    generator = torch_generator("recorded samples")
    model = make("pre_norm", generator).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    kept, plain = (TrainingStepper(model, static=static) for static in (True, False))
    num_equal = num_drawn = 0
    for update, count in enumerate((40, 40, 40, 9, 40, 100, 40, 9)):
        sources = [
            torch.randint(4, VOCAB, (1 + i % 9,), generator=generator).tolist()
            for i in range(count)
        ]
        settings = {"count": 5, "temperature": 1.0, "seed": update}
        settings |= {"limits": [12] * count, "prefixes": [one[: update % 3] for one in sources]}
        tables = []
        for stepper in (kept, plain):
            with stepper.at_present() as now:
                tables.append(draw_samples(now, sources, **settings))
        for found, expected in zip(*(one.hypotheses() for one in tables), strict=True):
            for one, other in zip(found, expected, strict=True):
                num_drawn += 1
                if one.tokens == other.tokens and one.finished == other.finished:
                    num_equal += 1
                    values = one.token_log_probabilities, other.token_log_probabilities
                    assert np.allclose(*values, rtol=0, atol=2e-3)
        for weight in model.parameters():
            weight.grad = torch.randn(weight.shape, generator=generator).to(device)
        optimizer.step()
    assert num_equal >= 0.97 * num_drawn
    with torch.autocast(device, torch.bfloat16), kept.at_present() as now:
        for _ in range(3):
            values = draw_samples(now, sources, **settings).values
    assert (values <= 0).all()
    assert values.mean() < 0
