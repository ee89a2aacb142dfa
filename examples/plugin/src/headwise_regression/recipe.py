"""The recipe of a regression: settings alone, which are read without torch."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from headwise.settings import Settings
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.bundle_form import BundleForm
from headwise.tasks.declared_results import Result, mean_loss
from headwise.training.choices import TrainingSettings


class PointFiles(Settings):
    """Files of points: numbers separated by spaces, a point a line, the last number is learnt."""

    train: str
    valid: str | None = None


class NetworkSettings(Settings):
    """A network with one hidden layer."""

    hidden: Annotated[int, Field(ge=1, le=10_000)] = 16
    """Units of the hidden layer."""


class RegressionRecipe(AnyRecipe):
    """Learn a number from a few numbers."""

    bundle_form: ClassVar = BundleForm(
        noun=("a regression model", "回归模型"),
        example="regression.yaml",
        parts=("columns.json",),
    )
    metrics: ClassVar = {"loss": mean_loss(("loss of a point", "损失（每点）"))}
    results: ClassVar = {
        "points": Result(("points", "数据点")),
        "columns": Result(("inputs of a point", "每点的输入数")),
    }

    task: Literal["regression"] = "regression"
    """What the model is for."""
    data: PointFiles
    """The points it learns from and is measured on."""
    model: NetworkSettings = NetworkSettings()
    """What is built."""
    training: TrainingSettings = TrainingSettings()
    """How it learns; a point counts as a token."""
