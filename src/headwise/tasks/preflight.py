"""Checks a training of any task before time is spent on it: what is refused, and what is warned of.

    before data is read      device, compiler, TensorBoard, the number of processes, frozen weights,
                             named files, memory if the recipe alone tells the sizes of the model,
                             the task's own checks (`TrainedTask.check`)
    with the prepared data   memory by the true sizes, and the batch against the corpus

Only the first of several processes warns. Tested by `tests/promises` for every task.
"""

import logging
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from headwise.blocks.dropout import IN_STEPS, NUM_LEVELS, count_levels
from headwise.language import say
from headwise.settings import Settings
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.memory_check import check_memory
from headwise.tasks.named_files import check_named_files
from headwise.tasks.planned_step import PlannedStep
from headwise.tasks.run_notes import warning_once
from headwise.tasks.task import TrainedTask, training_of
from headwise.training.choices import TrainingSettings
from headwise.training.distributed_model import decide_parallel_compilation
from headwise.training.freezing import freeze
from headwise.training.precision import choose_device
from headwise.training.process_group import check_devices
from headwise.training.tensorboard import require_tensorboard

logger = logging.getLogger(__name__)


def check_before_start(
    task: TrainedTask[Any, Any], recipe: AnyRecipe, num_processes: int, *, anyway: bool
) -> None:
    """Everything that can be refused before data is read or a file is written."""
    training = training_of(recipe)
    choose_device(training.device)
    task.check_training(recipe)
    planned = task.planned_step(recipe)
    planned.check_processes(num_processes)
    check_machine(planned.training, num_processes)
    if training.freeze:
        with torch.device("meta"):
            step = task.planned_step(recipe)
            freeze(step.build(step.num_rows), training.freeze)
    with warning_once():
        check_named_files(recipe)
        warn_of_lost_dropout(recipe)
        task.check(recipe, num_processes=num_processes, anyway=anyway)
        if knows_sizes(recipe):
            step = _freezing(task.planned_step(recipe))
            check_memory(step, num_processes=num_processes, anyway=anyway)


def check_machine(training: TrainingSettings, num_processes: int) -> None:
    """Refuse settings that ask for what this machine or several processes do not have."""
    device = choose_device(training.device)
    check_devices(device)
    if training.tensorboard:
        require_tensorboard()
    if "on" in (training.compile, training.cuda_graphs):
        decide_parallel_compilation(training, device, alone=num_processes == 1)


def check_prepared(
    task: TrainedTask[Any, Any],
    recipe: AnyRecipe,
    prepared: Any,
    *,
    num_processes: int,
    anyway: bool,
) -> None:
    """What only the prepared data tells: memory by the true sizes, and a batch that is too large
    for the corpus.
    """
    with warning_once():
        if not knows_sizes(recipe):
            with tempfile.TemporaryDirectory(prefix="headwise-parts-") as temporary:
                task.save_parts(recipe, prepared, Path(temporary))
                step = _freezing(task.planned_step(recipe, Path(temporary)))
            check_memory(step, num_processes=num_processes, anyway=anyway)
        warn_of_small_corpus(training_of(recipe), task.count_tokens(recipe, prepared))


def knows_sizes(recipe: AnyRecipe) -> bool:
    """Whether the recipe alone says how large the vocabulary is; of words and characters it only
    says how large it may be at most.
    """
    return bool(getattr(getattr(recipe, "text", None), "has_exact_size", False))


def _freezing(step: PlannedStep) -> PlannedStep:
    """The step with the weights frozen that the recipe freezes: they need no optimiser state."""
    if not step.training.freeze:
        return step

    def build(rows: int) -> nn.Module:
        module = step.build(rows)
        freeze(module, step.training.freeze)
        return module

    return replace(step, build=build)


def warn_of_lost_dropout(recipe: AnyRecipe) -> None:
    """A rate that rounds to nothing is said, not refused: a run that began with one must be able to
    go on.
    """
    for name, rate in _lost_rates(getattr(recipe, "model", None), "model"):
        logger.warning(
            "%s",
            say(
                f"{name} is {rate:g}, but rates are multiples of 1/{NUM_LEVELS}: nothing is "
                f"dropped there; use 0, or {1 / NUM_LEVELS:.4f} and more",
                f"{name} 为 {rate:g}，但比率是 1/{NUM_LEVELS} 的整数倍：此处不会丢弃任何数；"
                f"请用 0，或不小于 {1 / NUM_LEVELS:.4f} 的值",
            ),
        )


def _lost_rates(settings: object, path: str) -> Iterator[tuple[str, float]]:
    """Rates of `blocks.dropout.drop` above 0 that mean 0, by their keys in the recipe."""
    if not isinstance(settings, Settings):
        return
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if IN_STEPS in field.metadata and value > 0 and count_levels(value) == 0:
            yield f"{path}.{name}", value
        yield from _lost_rates(value, f"{path}.{name}")


def warn_of_small_corpus(training: TrainingSettings, num_tokens: int | None) -> None:
    """An update larger than the corpus has every sentence several times: it learns no more than a
    smaller one.
    """
    update = training.accumulation * training.batch_tokens
    if num_tokens is None or update <= num_tokens:
        return
    times = f"{update / max(1, num_tokens):.1f}"
    logger.warning(
        "%s",
        say(
            f"an update takes {update:,} tokens, but the whole training data has {num_tokens:,}: "
            f"each update would contain all of it about {times} times; lower "
            "training.batch_tokens (or training.accumulation), or give more text",
            f"一次更新取 {update:,} 个词元，而全部训练数据只有 {num_tokens:,} 个："
            f"每次更新约包含全部数据 {times} 遍；请减小 training.batch_tokens（或 "
            "training.accumulation），或增加语料",
        ),
    )
