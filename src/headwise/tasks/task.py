"""The protocol of a task: everything that `run.py` needs to know about what is learnt.

    recipe  →  prepare  →  build  →  learner  →  (the training loop)  →  measure  →  bundle  →  load

A task is one entry in `table.py` and a folder under `tasks/` with a `recipe.py` (settings), a
`task.py`, and the object that uses the trained model (a `Translator`, a `LanguageModel` …). There
are two kinds of tasks. A `TrainedTask` learns by gradient steps. A `SinglePassTask` (n-grams, word
vectors) learns its tables in one process and in a single pass, without checkpoints; word vectors
may go over the text in several epochs. Locks, resuming, signals, torchrun, checks of disk and
memory, `--check`, the log, the bundle and its model card are the same for all tasks and are in
`run.py`. `planner.py` plans any task, `inspecting/description.py` describes it, and
`comparing/recipes.py` compares models of one task by its `comparison_metrics`.

The word `language_modeling` has recipes of both kinds; `for_recipe` chooses the right one.

Tested by `tests/promises`: every promise of a run, for every task in the table.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from torch import nn

from headwise.data.batching import Share
from headwise.errors import UsageError
from headwise.settings import read_settings_file
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.comparison_metrics import ComparisonMetrics
from headwise.tasks.events import Events
from headwise.tasks.named_files import check_named_files
from headwise.tasks.planned_step import PlannedStep
from headwise.tasks.training_cost import TrainingCost, Trial
from headwise.training.choices import TrainingSettings
from headwise.training.prefetching import Batches
from headwise.training.session import Evaluate
from headwise.training.updates import Trainable
from headwise.weights import Weights, weights_of

RecipeType = TypeVar("RecipeType", bound=AnyRecipe)
Prepared = TypeVar("Prepared")


@dataclass(frozen=True)
class Learner:
    """What the training loop is given for one process."""

    trainable: Trainable
    """The module and its loss."""
    batches: Batches
    """This process's share of the training data, without end."""
    training: TrainingSettings
    """The recipe's `training` section, with what `auto` means for this model."""
    evaluate: Evaluate | None
    """What a validation measures; None without validation data."""


@dataclass(frozen=True)
class SinglePassModel:
    """What a single pass has learnt: tables, what is said of them, and the object to measure."""

    weights: Weights
    results: Mapping[str, Any]
    model: Any


@dataclass(frozen=True)
class SinglePassPart:
    """One table of such a model, for `headwise describe`."""

    name: tuple[str, str]
    """In English and Chinese."""
    parameters: int
    nbytes: int


class Task(ABC, Generic[RecipeType, Prepared]):
    """One kind of learning problem; see the head of this file."""

    def for_recipe(self, recipe: RecipeType) -> "Task[RecipeType, Prepared]":
        """The task of this recipe, where recipes of one task are of both kinds."""
        return self

    @abstractmethod
    def prepare(self, recipe: RecipeType, directory: Path, watcher: Events) -> Prepared:
        """Read the data of a recipe; what is kept for resuming goes into `directory`."""

    @abstractmethod
    def sizes(self, recipe: RecipeType, prepared: Prepared) -> dict[str, Any]:
        """Sizes of the prepared data, for `--check` and the results: lines, tokens, vocabulary."""

    @abstractmethod
    def describe_start(
        self, recipe: RecipeType, prepared: Prepared, module: nn.Module | None
    ) -> str:
        """One sentence on data and model before training begins; None: there is no module."""

    def measure(
        self,
        recipe: RecipeType,
        prepared: Prepared,
        model: Any,
        *,
        watcher: Events,
        directory: Path | None,
    ) -> dict[str, Any]:
        """Final scores; `model` is the trained module or `SinglePassModel.model`."""
        return {}

    def comparison_metrics(self, recipe: RecipeType) -> ComparisonMetrics:
        """How models of such recipes are compared; a task without this method is refused there."""
        name = type(self).__name__
        raise UsageError(
            f"recipes of task {recipe.task} cannot be compared: the task ({name}) has no method "
            "`comparison_metrics`, which says what is scored; train them one by one with `headwise "
            "train`",
            f"任务 {recipe.task} 的配方无法比较：该任务（{name}）没有 `comparison_metrics` 方法，"
            "未说明以什么评分；请用 `headwise train` 逐个训练",
        )

    def check_data(self, recipe: RecipeType) -> None:
        """Refuse data that every run of a comparison would refuse; asked once for equal data."""
        check_named_files(recipe)

    def shared_data(self, recipe: RecipeType) -> str | None:
        """A name that recipes have in common if they may share one directory of prepared data.

        None: every run prepares its own.
        """
        return None

    def check_prepared(self, recipe: RecipeType, prepared: Prepared) -> None:
        """Refuse a recipe that does not fit shared data, which another recipe prepared."""

    def save_parts(self, recipe: RecipeType, prepared: Prepared, directory: Path) -> None:
        """Write what a bundle holds beside weights, recipe and results: tokenizers, classes."""

    @abstractmethod
    def title(self, recipe: RecipeType) -> str:
        """The first line of the model card."""

    def card_details(self, recipe: RecipeType, prepared: Prepared) -> str:
        """A sentence or two about the model for its card."""
        return f"Model: {getattr(getattr(recipe, 'model', None), 'kind', recipe.task)}."

    def card_use(self, recipe: RecipeType) -> str:
        """Code for the model card's section on use; empty for none."""
        return ""

    @abstractmethod
    def load(self, directory: Path) -> Any:
        """What a user holds, from a bundle."""

    def summarize(self, directory: Path) -> str:
        """Load a bundle whole and say in a few words what it is: its task and its language."""
        self.load(directory)
        recipe = read_settings_file(directory / "recipe.yaml")
        language = (recipe.get("data") or {}).get("language")
        return ", ".join([recipe["task"], *([language] if language else [])])


class TrainedTask(Task[RecipeType, Prepared]):
    """A task whose models learn by gradient steps."""

    def check_training(self, recipe: RecipeType) -> None:
        """Refuse training settings that the model has no form for, before a training or a plan."""

    def check(self, recipe: RecipeType, *, num_processes: int, anyway: bool) -> None:
        """Refuse or warn of what can be known from the recipe and the machine alone."""

    def reopen(self, recipe: RecipeType, directory: Path, watcher: Events) -> Prepared:
        """What the first process has prepared, for the other processes of a run."""
        return self.prepare(recipe, directory, watcher)

    @abstractmethod
    def build(self, recipe: RecipeType, prepared: Prepared) -> nn.Module:
        """A new model with the weights that the recipe's seed gives it."""

    @abstractmethod
    def learner(
        self,
        recipe: RecipeType,
        prepared: Prepared,
        module: nn.Module,
        *,
        share: Share,
        directory: Path,
    ) -> Learner:
        """Loss, batches and validation of a training."""

    @abstractmethod
    def trial(self, recipe: RecipeType, prepared: Prepared, module: nn.Module) -> Trial:
        """A step whose time and memory are measured by `--check`."""

    @abstractmethod
    def planned_step(self, recipe: RecipeType, bundle: Path | None = None) -> PlannedStep:
        """The training step as shapes alone, for planning and describing.

        Sizes that come from the data are those in `bundle`, which holds at least what `save_parts`
        writes; without it they are assumed.
        """

    def count_tokens(self, recipe: RecipeType, prepared: Prepared) -> int | None:
        """Tokens of the training data, as `training.batch_tokens` counts them; None: not known."""
        return None

    def weights(self, module: nn.Module) -> Weights:
        """The tensors of a bundle."""
        return weights_of(module)


class SinglePassTask(Task[RecipeType, Prepared]):
    """A task whose models are learnt in a single pass by one process, without checkpoints."""

    @abstractmethod
    def learn(self, recipe: RecipeType, prepared: Prepared, watcher: Events) -> SinglePassModel:
        """Make the model."""

    @abstractmethod
    def predict_cost(self, recipe: RecipeType, prepared: Prepared) -> TrainingCost:
        """What the pass takes, measured on a part of the data."""

    @abstractmethod
    def bound_memory(self, recipe: RecipeType, prepared: Prepared) -> int:
        """Bytes that the pass cannot exceed, from the sizes alone: nothing is measured."""

    @abstractmethod
    def describe_parts(self, directory: Path) -> tuple[SinglePassPart, ...]:
        """The tables of a bundle."""


def training_of(recipe: AnyRecipe) -> TrainingSettings:
    """The `training` section of a recipe whose model learns by gradient steps."""
    training = getattr(recipe, "training", None)
    assert isinstance(training, TrainingSettings), (
        "only tasks of a single pass have no `training` section of this kind"
    )
    return training


def refuse_several_processes(count: int, reason: tuple[str, str]) -> None:
    """A single pass is made by one process."""
    if count > 1:
        raise UsageError(
            f"{count} processes were started, but {reason[0]}; run `headwise train` without "
            "torchrun",
            f"启动了 {count} 个进程，但{reason[1]}；请不用 torchrun，直接运行 `headwise train`",
        )


def rows_of_batch(batch_tokens: int, row_tokens: int) -> int:
    """Rows of a batch of about so many tokens, at least one."""
    return max(1, round(batch_tokens / row_tokens))
