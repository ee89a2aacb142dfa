"""Averages the weights over training; averages are usually better than the last weights alone.

    mean of the last n snapshots     w̄ = (w₁ + … + wₙ) / n                 Vaswani et al. 2017, 6.1
    exponential moving average       e ← d e + (1 - d) w  (every update)    Polyak & Juditsky 1992

The moving average starts at the initial weights. To forget them quickly, its decay grows with the
number t of updates:

    d = min(decay, (1 + t) / (10 + t))

Snapshots are directories with weights only, written and checksummed like checkpoints. Tested
against the sums written out in float64.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from headwise.storage import publish_directory, remove_directory, verify_directory
from headwise.weights import (
    Weights,
    local_part,
    put_weights,
    read_tensors,
    weights_of,
    write_tensors,
)

KIND = "headwise.weights"
FILE = "model.safetensors"


class SnapshotFolder:
    """A folder of weights by step: `step-500/model.safetensors` and its manifest."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def at(self, step: int) -> Path:
        return self.path / f"step-{step}"

    def steps(self) -> list[int]:
        """Steps that are there, oldest first."""
        names = (re.fullmatch(r"step-(\d+)", path.name) for path in self.path.glob("step-*"))
        return sorted(int(name[1]) for name in names if name)

    def write(self, step: int, weights: Weights) -> None:
        if step in self.steps():
            return
        with publish_directory(self.at(step), kind=KIND) as directory:
            write_tensors(directory / FILE, weights)

    def read(self, step: int) -> dict[str, Tensor]:
        verify_directory(self.at(step), kind=KIND)
        return read_tensors(self.at(step) / FILE)

    def keep_only(self, steps: Iterable[int]) -> None:
        for step in set(self.steps()) - set(steps):
            remove_directory(self.at(step))


def average_snapshots(folder: SnapshotFolder, steps: Sequence[int]) -> dict[str, Tensor]:
    """The mean of the weights at these steps, one file at a time."""
    return average_weights(folder.read(step) for step in steps)


def average_weights(sets: Iterable[Weights]) -> dict[str, Tensor]:
    """The mean of several sets of weights, summed in float64. Integer buffers are the last ones."""
    total: dict[str, Tensor] = {}
    last: Weights = {}
    count = 0
    for last in sets:
        count += 1
        for name, tensor in last.items():
            if tensor.is_floating_point():
                total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {
        name: (total[name] / count).to(tensor.dtype) if name in total else tensor
        for name, tensor in last.items()
    }


def copy_weights(weights: Weights) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in weights.items()}


class MovingAverage:
    """The exponential moving average of a module's weights, kept beside it on the same device."""

    def __init__(self, module: nn.Module, *, decay: float) -> None:
        self.decay = decay
        self.source = weights_of(module)
        self.weights = copy_weights(self.source)

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Include the weights after update number `step` (from 1)."""
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        floating = [name for name, tensor in self.weights.items() if tensor.is_floating_point()]
        ours, theirs = (
            [local_part(side[name]) for name in floating] for side in (self.weights, self.source)
        )
        torch._foreach_lerp_(ours, theirs, share)
        for name in self.weights.keys() - set(floating):
            self.weights[name].copy_(self.source[name])

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Inside the block, the module has the averaged weights; afterwards its own again."""
        own = copy_weights(self.source)
        put_weights(self.source, self.weights)
        try:
            yield
        finally:
            put_weights(self.source, own)
