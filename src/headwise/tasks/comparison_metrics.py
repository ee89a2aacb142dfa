"""`ComparisonMetrics`: how the models of a task are compared, by which score, on which items.

`headwise compare` asks a task for its comparison metrics (`Task.comparison_metrics`) and needs to
know nothing else about the task. A run saves what each item of the test set (a sentence, a text, a
point) adds to the score. The comparison metrics read this, and the paired bootstrap
(evaluation/several_seeds.py) computes intervals and p-values from it.

Tested by `tests/promises` over the table of tasks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from headwise.evaluation.several_seeds import SCALE, Statistics
from headwise.tasks.any_recipe import AnyRecipe

Words = tuple[str, str]
"""A text in English and Chinese."""


@dataclass(frozen=True)
class Metric:
    """A score: its names, how it is written, and which direction is better."""

    key: str
    """In JSON."""
    title: Words
    """In the head of a table."""
    axis: Words
    """On the axis of a picture."""
    digits: int = 1
    """After the point; what rounds to 0 with them counts as no difference."""
    ends: tuple[float, float] = SCALE
    """The range of the score; an interval is cut there."""
    higher_is_better: bool = True

    @property
    def smallest(self) -> float:
        """A smaller difference is shown as zero and counts as none, even if it is significant."""
        return 0.5 * 10.0**-self.digits


ENDS: Mapping[str, tuple[float, float]] = {
    "loss": (0.0, float("inf")),
    "perplexity": (1.0, float("inf")),
}
"""The range of metrics of a unit, where it is not that of a score in percent."""


def declared_metric(recipe: AnyRecipe, key: str) -> Metric:
    """A metric as the recipe type declares it (declared_results.py); a share is written in
    percent."""
    declared = recipe.metrics[key]
    en, zh = declared.title
    axis = (en if declared.unit == "score" else en[0].upper() + en[1:], zh)
    if declared.unit == "share":
        (en, zh), axis = (f"{en}, %", f"{zh} %"), (f"{axis[0]} in %", f"{zh}（%）")
    return Metric(
        key,
        title=(en, zh),
        axis=axis,
        digits=3 if declared.unit == "loss" else 1,
        ends=ENDS.get(declared.unit, SCALE),
        higher_is_better=declared.better != "lower",
    )


ON_VALIDATION = (
    "There is no test set: the scores are those of data.valid, which may also have chosen the "
    "weights.",
    "没有测试集：分数取自 data.valid，而最佳权重也可能由它选出。",
)
"""The remark where the validation set is scored."""


@dataclass(frozen=True)
class ComparisonMetrics:
    """How the models of a recipe are measured in a comparison."""

    metrics: tuple[Metric, ...]
    """The first decides, the others are shown; none: the models have no score."""
    question: Mapping[str, Any]
    """Settings that decide what a score means, by key: all variants must have the same."""
    read: Callable[[Path], Mapping[str, Statistics]]
    """From a run directory to what each item adds to each metric."""
    is_scored: bool = True
    """Whether the recipe names data to be scored on."""
    tokens: Mapping[str, Any] = field(default_factory=dict)
    """Settings that decide which tokens are predicted, by key, where a score depends on them."""
    results: tuple[str, ...] = ()
    """What the results of a run have after it was measured."""
    files: tuple[str, ...] = ()
    """What a run directory has after it was measured."""
    unit: Literal["sentences", "words"] | None = None
    """Of the speed of processing the test set; None: it is not measured."""
    signature: Callable[[], str] = str
    """The exact definition of the metrics, asked after something was scored."""
    remark: Words | None = None
    """A sentence that a reader of the table needs."""

    @property
    def scored_on(self) -> Words:
        """The data of the scores, for sentences about them."""
        if self.remark is ON_VALIDATION:
            return "validation set", "验证集"
        return "test set", "测试集"
