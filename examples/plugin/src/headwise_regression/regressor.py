"""What a user holds: a trained regression, loaded from its bundle.

regressor = Regressor.load("runs/line")
regressor([[0.5, 2.0]])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from headwise.errors import CheckpointError, UsageError
from headwise.storage import read_json
from headwise.tasks.bundle import open_bundle
from headwise_regression.network import Network, build_network
from headwise_regression.recipe import RegressionRecipe

COLUMNS = "columns.json"
"""The part of the bundle that says how many numbers the model reads."""


@dataclass(frozen=True)
class Regressor:
    """A model and the number of its inputs."""

    network: Network
    num_inputs: int

    @classmethod
    def load(cls, directory: Path | str) -> "Regressor":
        """From a bundle, or the bundle inside a run; every file is checked first."""
        opened = open_bundle(Path(directory), RegressionRecipe)
        file = opened.directory / COLUMNS
        num_inputs = read_json(file)
        if type(num_inputs) is not int or num_inputs < 1:
            raise CheckpointError(
                "is not a number of columns; use another copy of the bundle",
                "不是列数；请换用其他副本",
                file=file,
            )
        hidden = opened.recipe.model.hidden
        network = opened.load_weights(lambda: build_network(num_inputs, hidden, None))
        return cls(network, num_inputs)

    @torch.inference_mode()
    def __call__(self, points: Sequence[Sequence[float]]) -> list[float]:
        """The number that belongs to each point."""
        x = torch.tensor(points, dtype=torch.float32)
        if x.ndim != 2 or x.shape[1] != self.num_inputs:
            raise UsageError(
                f"points of {self.num_inputs} numbers each are needed",
                f"每个点需要 {self.num_inputs} 个数",
            )
        return self.network(x).tolist()
