"""The base class of all recipes (the settings of a training). It holds the key `task:`, which says
what the model is for.

Each task's own recipe (tasks/<task>/recipe.py) is a subclass; `recipe.py` finds the right one. It
declares what its runs report (declared_results.py). Nothing here loads torch.
"""

from typing import Any, ClassVar, Self

from pydantic import model_validator

from headwise.settings import Settings
from headwise.tasks.bundle_form import BundleForm
from headwise.tasks.declared_results import Results
from headwise.training.choices import TrainingSettings


class AnyRecipe(Settings):
    """A recipe of any task."""

    bundle_form: ClassVar[BundleForm]
    """What the models that it makes are called and consist of."""

    metrics: ClassVar[Results] = {}
    """What models are measured by, on validation and test data."""
    results: ClassVar[Results] = {}
    """What a run reports beside its metrics and what every run has (result_rows.py): sizes."""

    task: str
    """What the model is for."""

    @property
    def validated_metrics(self) -> Results:
        """The metrics of every validation of a training by this recipe."""
        return {key: metric for key, metric in self.metrics.items() if metric.is_validated}

    @model_validator(mode="after")
    def _check_best(self) -> Self:
        training = getattr(self, "training", None)
        if self.metrics and isinstance(training, TrainingSettings):
            training.keep.check_metric(tuple(self.validated_metrics))
        return self

    @property
    def corpora_settings(self) -> Any:
        """The `data` section, whatever its type."""
        return getattr(self, "data", None)
