"""Whole small runs for the tests of the loop: weights, logs, and data that breaks at a known
place.
"""

import torch

from headwise.training.log_file import read_log
from headwise.training.loop import train
from headwise.training.run_directory import RunDirectory
from headwise.training.session import TIMINGS
from headwise.weights import weights_of
from tests.training.tiny import TinyBatches, TinyTrainable, tiny_settings


def weights_after(trainable):
    return {name: tensor.clone() for name, tensor in weights_of(trainable.module).items()}


def equal(left, right):
    return left.keys() == right.keys() and all(
        torch.equal(left[name], right[name]) for name in left
    )


def lines_of(path):
    lines = read_log(path / "log.jsonl")
    return [{key: value for key, value in line.items() if key not in TIMINGS} for line in lines]


def run_in(path, *, resume=False, evaluate=None, batches=None, trainable=None, **changes):
    settings = tiny_settings(**changes)
    recipe = {"training": settings.model_dump(mode="json")}
    trainable = trainable or TinyTrainable()
    with RunDirectory.open(path, recipe=recipe, resume=resume) as run:
        result = train(trainable, batches or TinyBatches(), settings, run, evaluate=evaluate)
    return result, weights_after(trainable)


class Measured:
    """A trainable with its own validation loss, as tasks have it."""

    def __init__(self):
        self.trainable = TinyTrainable()

    def __call__(self, step):
        assert not self.trainable.module.training
        assert not torch.is_grad_enabled()
        sums = self.trainable.loss(TinyBatches(seed=99).batch(0))
        return {"loss": float(sums.loss / sums.num_tokens)}


def measured_run(path, **changes):
    measured = Measured()
    return run_in(path, evaluate=measured, trainable=measured.trainable, **changes)


class StopAfter(Exception):
    pass


class Breaking(TinyBatches):
    """The data fails before batch `limit`: what an out-of-memory or a lost disk does to a run, at a
    known place.
    """

    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def stream(self, cursor):
        for batch, after in super().stream(cursor):
            if after["index"] > self.limit:
                raise StopAfter
            yield batch, after
