"""A warm-up that never ends is said before training; one that ends, or a model without one,
is not.
"""

import logging
import re

import pytest
import torch

from headwise.blocks.power_norm import PowerNorm
from headwise.training.choices import TrainingSettings
from headwise.training.loop import train
from headwise.training.warmup_check import warn_of_endless_warmup
from tests.training.tiny import DIM, TinyBatches, TinyTrainable, tiny_settings


@pytest.mark.parametrize(
    ("warmup", "accumulation", "num_processes", "said"),
    [
        (
            4000,
            1,
            1,
            "warms up for 4,000 batches, but this training has 800: .*model.norm.warmup=200 ",
        ),
        (800, 1, 1, "has 800"),
        (799, 1, 1, None),
        (800, 2, 1, None),
        (2000, 2, 1, "has 1,600: .*model.norm.warmup=400 "),
        (800, 2, 2, "has 800"),
    ],
)
def test_a_warm_up_as_long_as_the_training_is_said(
    caplog: pytest.LogCaptureFixture,
    warmup: int,
    accumulation: int,
    num_processes: int,
    said: str | None,
) -> None:
    model = torch.nn.Sequential(PowerNorm(3, warmup=warmup), PowerNorm(3, warmup=warmup))
    settings = TrainingSettings(steps=800, accumulation=accumulation)
    with caplog.at_level(logging.WARNING):
        warn_of_endless_warmup(model, settings, num_processes=num_processes)
    assert len(caplog.messages) == (said is not None)
    assert said is None or re.search(said, caplog.messages[0])


def test_other_norms_have_none(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_endless_warmup(torch.nn.LayerNorm(3), TrainingSettings(steps=1), num_processes=1)
    assert caplog.messages == []


def test_a_training_says_it_before_its_first_update(caplog: pytest.LogCaptureFixture) -> None:
    trainable = TinyTrainable()
    trainable.module.norm = PowerNorm(DIM)
    with caplog.at_level(logging.WARNING):
        train(trainable, TinyBatches(num_batches=0), tiny_settings(steps=8, validate_every=None))
    assert "set model.norm.warmup=2 (a quarter), or train longer" in caplog.text
