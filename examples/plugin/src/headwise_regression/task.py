"""Regression for `headwise train`: what is prepared, built, lost, measured and saved.

    loss = Σ over points of ½ (network(x) − y)²

How a run goes (resuming, signals, several processes, memory, log, model card) is Headwise's part.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from headwise.data.batching import ALL_ROWS, Share
from headwise.evaluation.item_means import MeanStatistics
from headwise.language import say
from headwise.randomness import torch_generator
from headwise.storage import read_json
from headwise.tasks.comparison_metrics import ON_VALIDATION, ComparisonMetrics, declared_metric
from headwise.tasks.events import Events
from headwise.tasks.item_scores import item_file, read_item_scores, save_item_scores
from headwise.tasks.planned_step import PlannedStep, Sample
from headwise.tasks.task import Learner, TrainedTask
from headwise.tasks.training_cost import Trial, first_batch
from headwise.training.losses import LossSums
from headwise_regression.network import Network, build_network
from headwise_regression.points import PointBatch, PointBatches, Points, read_points
from headwise_regression.recipe import RegressionRecipe
from headwise_regression.regressor import COLUMNS, Regressor


@dataclass(frozen=True)
class RegressionData:
    """The points of a recipe."""

    train: Points
    valid: Points | None

    @property
    def num_inputs(self) -> int:
        return self.train.inputs.shape[1]


@dataclass(frozen=True)
class SquaredError:
    """A network and its loss."""

    module: Network

    def loss(self, batch: PointBatch) -> LossSums:
        found = self.module(batch.inputs).float()
        loss = ((found - batch.targets) ** 2).sum() / 2
        return LossSums(loss, loss.detach(), torch.tensor(len(found), device=found.device))


class RegressionTask(TrainedTask[RegressionRecipe, RegressionData]):
    """Learn a number from a few numbers."""

    def prepare(self, recipe: RegressionRecipe, directory: Path, watcher: Events) -> RegressionData:
        train = read_points(Path(recipe.data.train))
        if recipe.data.valid is None:
            return RegressionData(train, None)
        num_columns = train.inputs.shape[1] + 1
        return RegressionData(train, read_points(Path(recipe.data.valid), num_columns))

    def sizes(self, recipe: RegressionRecipe, prepared: RegressionData) -> dict[str, Any]:
        return {"points": len(prepared.train), "columns": prepared.num_inputs}

    def build(self, recipe: RegressionRecipe, prepared: RegressionData) -> Network:
        generator = torch_generator(recipe.training.seed, "weights")
        return build_network(prepared.num_inputs, recipe.model.hidden, generator)

    def planned_step(self, recipe: RegressionRecipe, bundle: Path | None = None) -> PlannedStep:
        """Points as rows of one token; without a bundle one input is assumed."""
        num_inputs = 1 if bundle is None else read_json(bundle / COLUMNS)

        def make_loss(module: nn.Module, chunk_size: int) -> SquaredError:
            assert isinstance(module, Network)
            return SquaredError(module)

        return PlannedStep(
            recipe.training,
            build=lambda rows: build_network(num_inputs, recipe.model.hidden, None),
            trainable=make_loss,
            batch=lambda rows, length: PointBatch(torch.ones(rows, num_inputs), torch.ones(rows)),
            row=1,
            sample=Sample(("One point", "一个数据点"), ("point", "数据点"), length=1),
        )

    def learner(
        self,
        recipe: RegressionRecipe,
        prepared: RegressionData,
        module: nn.Module,
        *,
        share: Share,
        directory: Path,
    ) -> Learner:
        assert isinstance(module, Network)
        loss, training = SquaredError(module), recipe.training
        batches = PointBatches(prepared.train, training.batch_tokens, training.seed, share)

        @torch.inference_mode()
        def evaluate(step: int) -> Mapping[str, float]:
            assert prepared.valid is not None
            return {"loss": mean_loss(module, prepared.valid)}

        return Learner(loss, batches, training, None if prepared.valid is None else evaluate)

    def count_tokens(self, recipe: RegressionRecipe, prepared: RegressionData) -> int:
        """A point counts as a token."""
        return len(prepared.train)

    def trial(self, recipe: RegressionRecipe, prepared: RegressionData, module: nn.Module) -> Trial:
        assert isinstance(module, Network)
        training = recipe.training
        return Trial(
            SquaredError(module),
            training.batch_tokens,
            lambda rows: first_batch(PointBatches(prepared.train, rows, training.seed, ALL_ROWS)),
        )

    def describe_start(
        self, recipe: RegressionRecipe, prepared: RegressionData, module: nn.Module | None
    ) -> str:
        points, columns = self.sizes(recipe, prepared).values()
        return say(
            f"{points:,} points of {columns} inputs", f"{points:,} 个点，每点 {columns} 个输入"
        )

    def measure(
        self,
        recipe: RegressionRecipe,
        prepared: RegressionData,
        model: Any,
        *,
        watcher: Events,
        directory: Path | None,
    ) -> dict[str, Any]:
        if prepared.valid is None:
            return {}
        losses = point_losses(model, prepared.valid)
        if directory is not None:
            columns = {"loss": losses.tolist(), "points": [1] * len(losses)}
            save_item_scores(directory, "valid", columns)
        return {"valid_loss": mean_loss(model, prepared.valid)}

    def comparison_metrics(self, recipe: RegressionRecipe) -> ComparisonMetrics:
        """How `headwise compare` scores such models: the mean loss of a point of `data.valid`."""

        def read(directory: Path) -> dict[str, MeanStatistics]:
            kept = read_item_scores(directory, "valid", ("loss", "points"))
            return {"loss": MeanStatistics.of(kept["loss"], kept["points"])}

        is_scored = recipe.data.valid is not None
        return ComparisonMetrics(
            metrics=(declared_metric(recipe, "loss"),),
            question={"data.valid": recipe.data.valid},
            read=read,
            is_scored=is_scored,
            files=(item_file("valid"),) if is_scored else (),
            remark=ON_VALIDATION if is_scored else None,
        )

    def save_parts(
        self, recipe: RegressionRecipe, prepared: RegressionData, directory: Path
    ) -> None:
        (directory / COLUMNS).write_text(json.dumps(prepared.num_inputs), encoding="utf-8")

    def title(self, recipe: RegressionRecipe) -> str:
        return "Regression"

    def card_use(self, recipe: RegressionRecipe) -> str:
        return """```python
from headwise_regression.regressor import Regressor
regressor = Regressor.load("DIR OF THIS FILE")
print(regressor([[…]]))
```"""

    def load(self, directory: Path) -> Regressor:
        return Regressor.load(directory)

    def summarize(self, directory: Path) -> str:
        return say(
            f"regression of {self.load(directory).num_inputs} inputs",
            f"{self.load(directory).num_inputs} 个输入的回归",
        )


@torch.inference_mode()
def mean_loss(module: Network, points: Points) -> float:
    """The loss of a point, on average."""
    return float(point_losses(module, points).sum()) / len(points)


@torch.inference_mode()
def point_losses(module: Network, points: Points) -> Tensor:
    """The loss of each point."""
    device = module.outer.weight.device
    found = module(torch.from_numpy(points.inputs).to(device)).float()
    return (found - torch.from_numpy(points.targets).to(device)) ** 2 / 2
