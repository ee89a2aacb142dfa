"""Runs the training of any task, from the recipe to the measured bundle.

    read the recipe → check recipe, files, memory → open the run directory → prepare the data
    → build the model → check memory and disk → train (training/loop.py), or learn in
      a single pass
    → save the bundle → measure → save again

    runs/mine/  recipe.yaml   data/   log.jsonl   checkpoints/   model/   notes.json (if any)

A run directory is created once. It is refused if it holds another run, and resumed bit-exactly on
request. If anything is refused before training, a new directory is removed again, so that nothing
is left behind. The bundle is saved before it is measured, so that an error while measuring does
not lose the training.

Under torchrun every process runs this file. The first process opens the directory, prepares the
data, measures and saves; the others read the prepared data and train on their share of the rows.

Everything that differs between tasks is behind the protocol in `task.py`; no task is named here.
Tested by `tests/promises` over the table of tasks, and by `tests/survival`.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from headwise.data.batching import Share
from headwise.errors import UsageError
from headwise.language import say
from headwise.planning.peak_memory import MemoryMeter
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.arguments import require_path
from headwise.tasks.events import Events, MetricsWatcher, Silence
from headwise.tasks.finished_run import has_scores, is_whole, saved_results
from headwise.tasks.memory_check import check_single_pass_memory, explaining_memory
from headwise.tasks.named_files import check_named_files
from headwise.tasks.preflight import check_before_start, check_prepared
from headwise.tasks.recipe import complete_recipe, load_recipe, recipe_from
from headwise.tasks.run_notes import keep_notes, warn_of_measuring
from headwise.tasks.run_start import RunSummary, begun_run
from headwise.tasks.table import find_task
from headwise.tasks.task import (
    SinglePassModel,
    SinglePassTask,
    TrainedTask,
    refuse_several_processes,
    training_of,
)
from headwise.tasks.task_bundle import write_task_bundle
from headwise.tasks.training_cost import measure_cost
from headwise.training.checkpoints import count_bytes
from headwise.training.disk_space import check_room, check_single_pass_room
from headwise.training.loop import train as run_training
from headwise.training.precision import choose_device
from headwise.training.process_group import Processes, join_processes, world_size
from headwise.training.progress import TrainingResult
from headwise.training.run_directory import RunDirectory, check_directory, has_learnt
from headwise.training.run_recipe import FILE as RECIPE
from headwise.training.run_recipe import read_run_recipe


def train(
    recipe: AnyRecipe | str | Path,
    *,
    run: Path | str,
    resume: bool = False,
    overrides: Sequence[str] = (),
    events: Events | None = None,
    anyway: bool = False,
) -> RunSummary:
    """Train by a recipe (a value, a path or a shipped name); the bundle ends up in `run/model`.

    A training that cannot fit into memory is refused, unless `anyway`.
    """
    directory = require_path(run, "run", "runs/mine")
    if resume and (directory / RECIPE).exists():
        # Check the saved recipe first, so that damage to it is not reported as the caller's
        # mistake.
        read_run_recipe(directory / RECIPE)
    loaded = _load(recipe, overrides)
    task = find_task(loaded)
    watcher = events or Silence()
    notes = warn_of_measuring(recipe, overrides)
    if isinstance(task, SinglePassTask):
        summary = _train_in_single_pass(
            task, loaded, directory, watcher, notes, resume=resume, anyway=anyway
        )
    else:
        summary = _train(task, loaded, directory, watcher, notes, resume=resume, anyway=anyway)
    return summary


def _train(
    task: TrainedTask[Any, Any],
    recipe: AnyRecipe,
    directory: Path,
    watcher: Events,
    notes: tuple[str, ...],
    *,
    resume: bool,
    anyway: bool,
) -> RunSummary:
    """A training by gradient steps, in one process of possibly several."""
    training = training_of(recipe)
    with join_processes() as processes, contextlib.ExitStack() as stack:
        check_before_start(task, recipe, processes.count, anyway=anyway)
        stack.enter_context(explaining_memory(training, directory))
        meter = MemoryMeter(choose_device(training.device))

        def build(prepared: Any) -> torch.nn.Module:
            check_prepared(task, recipe, prepared, num_processes=processes.count, anyway=anyway)
            meter.start_building()
            module: torch.nn.Module = task.build(recipe, prepared)
            if processes.is_first:
                check_room(directory, module, training)
            return module

        opened, (prepared, module) = stack.enter_context(
            _open(task, recipe, directory, watcher, processes, build, resume=resume)
        )
        if opened is not None:
            notes = keep_notes(opened, recipe, notes)
        share = Share(processes.number, processes.count, training.accumulation)
        learner = task.learner(recipe, prepared, module, share=share, directory=directory)
        _tell_start(watcher, recipe, task.describe_start(recipe, prepared, module))
        meter.start_running()
        outcome = run_training(
            learner.trainable,
            learner.batches,
            learner.training,
            opened,
            evaluate=learner.evaluate,
            progress=watcher.training,
            processes=processes,
            better=_direction_of_best(recipe),
        )
        results: Mapping[str, Any] = task.sizes(recipe, prepared) | _training_results(
            module, outcome, meter.peak_of_process()
        )
        if opened is not None:
            results = _finish(
                task,
                recipe,
                prepared,
                module,
                opened=opened,
                results=results,
                notes=notes,
                watcher=watcher,
            )
    return RunSummary(directory, recipe, results, notes)


def _tell_start(watcher: Events, recipe: AnyRecipe, sentence: str) -> None:
    """What is trained, and which metrics a validation will report."""
    watcher.note(sentence)
    if isinstance(watcher, MetricsWatcher):
        watcher.learn_metrics(recipe.metrics)


def _train_in_single_pass(
    task: SinglePassTask[Any, Any],
    recipe: AnyRecipe,
    directory: Path,
    watcher: Events,
    notes: tuple[str, ...],
    *,
    resume: bool,
    anyway: bool,
) -> RunSummary:
    """A model that is learnt in a single pass: there are no checkpoints to resume from."""
    check_named_files(recipe)
    reason = (
        "this model is learnt in a single pass by one process",
        "该模型由一个进程一遍学成",
    )
    refuse_several_processes(world_size(), reason)
    _refuse_finished(directory)

    def prepare_and_learn() -> tuple[Any, SinglePassModel]:
        prepared = task.prepare(recipe, directory / "data", watcher)
        watcher.note(task.describe_start(recipe, prepared, None))
        _check_single_pass_memory(task, recipe, prepared, anyway=anyway)
        check_single_pass_room(directory, 0)
        learnt = task.learn(recipe, prepared, watcher)
        check_single_pass_room(directory, count_bytes(learnt.weights))
        return prepared, learnt

    with begun_run(directory, recipe, prepare_and_learn, resume=resume) as begun:
        opened, (prepared, learnt) = begun
        results = {**task.sizes(recipe, prepared), **learnt.results}
        save = partial(
            write_task_bundle,
            opened.model,
            task,
            recipe,
            prepared,
            weights=learnt.weights,
            notes=notes,
        )
        save(results=results)
        results |= task.measure(
            recipe, prepared, learnt.model, watcher=watcher, directory=directory
        )
        plain = {name: value for name, value in results.items() if not isinstance(value, dict)}
        opened.log.write({"kind": "count", "step": 0, **plain})
        save(results=results)
    return RunSummary(directory, recipe, results, notes)


def check_run(
    recipe: AnyRecipe | str | Path,
    overrides: Sequence[str] = (),
    *,
    directory: Path,
    events: Events | None = None,
    run: Path | str | None = None,
    resume: bool = False,
    anyway: bool = False,
) -> RunSummary:
    """Check a recipe, its data, its memory, the disk and the run directory as `train` would.

    Nothing is trained; the time and memory of a training are predicted. `directory` is scratch
    space that the caller removes.
    """
    found = _load(recipe, overrides)
    task = find_task(found)
    watcher = events or Silence()
    notes = warn_of_measuring(recipe, overrides)
    place = directory
    if run is not None:
        place = require_path(run, "run", "runs/mine")
        if isinstance(task, SinglePassTask):
            _refuse_finished(place)
        settings = found.model_dump(mode="json")
        check_directory(place, settings, resume=resume, complete=complete_recipe)
    is_single_pass = isinstance(task, SinglePassTask)
    if is_single_pass:
        check_named_files(found)
    else:
        check_before_start(task, found, world_size(), anyway=anyway)
    prepared = task.prepare(found, directory, watcher)
    name = "RECIPE" if isinstance(recipe, AnyRecipe) else str(recipe)
    if is_single_pass:
        watcher.note(task.describe_start(found, prepared, None))
        _check_single_pass_memory(task, found, prepared, anyway=anyway)
        cost = task.predict_cost(found, prepared)
        check_single_pass_room(place, cost.stored)
    else:
        check_prepared(task, found, prepared, num_processes=world_size(), anyway=anyway)
        module = task.build(found, prepared)
        watcher.note(task.describe_start(found, prepared, module))
        check_room(place, module, training_of(found))
        cost = measure_cost(task.trial(found, prepared, module), training=training_of(found))
    results = {**task.sizes(found, prepared), **cost.tell(watcher, recipe_name=name)}
    return RunSummary(None, found, results, notes=notes)


def _refuse_finished(directory: Path) -> None:
    """A single pass is finished or left nothing: there is nothing to resume."""
    if (directory / RECIPE).exists() and has_learnt(directory):
        raise UsageError(
            f"{directory} holds a run already, which is finished: a model that is learnt in a "
            "single pass has no checkpoint to go on from; train anew in another --run",
            f"{directory} 中已有一次运行，并且已经完成：一遍学成的模型没有可供继续的检查点；"
            "请在另一个 --run 目录重新训练",
        )


def _check_single_pass_memory(
    task: SinglePassTask[Any, Any], recipe: AnyRecipe, prepared: Any, *, anyway: bool
) -> None:
    bound = task.bound_memory(recipe, prepared)
    check_single_pass_memory(bound, lambda: task.predict_cost(recipe, prepared), anyway=anyway)


@contextlib.contextmanager
def _open(
    task: TrainedTask[Any, Any],
    recipe: AnyRecipe,
    directory: Path,
    watcher: Events,
    processes: Processes,
    build: Callable[[Any], torch.nn.Module],
    *,
    resume: bool,
) -> Iterator[tuple[RunDirectory | None, tuple[Any, torch.nn.Module]]]:
    """The run directory, which only the first process holds; the prepared data and the model."""

    def begin() -> tuple[Any, torch.nn.Module]:
        prepared = task.prepare(recipe, directory / "data", watcher)
        return prepared, build(prepared)

    if processes.is_first:
        with begun_run(directory, recipe, begin, resume=resume) as begun:
            processes.ask_first(lambda: None)
            yield begun
        return
    processes.ask_first(lambda: None)  # wait until the first process has prepared the data
    prepared = task.reopen(recipe, directory / "data", Silence())
    yield None, (prepared, build(prepared))


def _finish(
    task: TrainedTask[Any, Any],
    recipe: AnyRecipe,
    prepared: Any,
    module: torch.nn.Module,
    *,
    opened: RunDirectory,
    results: Mapping[str, Any],
    notes: tuple[str, ...],
    watcher: Events,
) -> Mapping[str, Any]:
    """Save the bundle, measure it, and save it with its scores; the results.

    If the run was finished before, its results and its card stay: the times and the memory of this
    session are not those of the training.
    """
    directory = opened.path
    saved = saved_results(recipe, directory) if opened.resumed else None
    if saved is not None and saved.get("steps") == results["steps"] and is_whole(recipe, directory):
        if saved.keys() > results.keys() and has_scores(task, recipe, directory, saved):
            steps = results["steps"]
            watcher.note(
                say(
                    f"{directory} is finished ({steps:,} steps): its results stay as they are",
                    f"{directory} 已经完成（{steps:,} 步）：保留原有结果",
                )
            )
            return saved
        results = {name: saved.get(name, value) for name, value in results.items()}
    save = partial(
        write_task_bundle,
        opened.model,
        task,
        recipe,
        prepared,
        weights=task.weights(module),
        notes=notes,
    )
    save(results=results)
    scores = task.measure(recipe, prepared, module.eval(), watcher=watcher, directory=directory)
    results = {**results, **scores}
    save(results=results)
    return results


def _direction_of_best(recipe: AnyRecipe) -> Literal["higher", "lower"] | None:
    """Which way the metric that chooses the best weights is better, as the task declares it."""
    metric = recipe.metrics.get(training_of(recipe).keep.best)
    return None if metric is None else metric.better


def _training_results(
    module: torch.nn.Module, outcome: TrainingResult, peak: float | None
) -> dict[str, Any]:
    """How training ended, for the model card."""
    return {
        "steps": outcome.step,
        "stopped_by": outcome.reason,
        "weights": outcome.weights,
        "target_tokens": outcome.target_tokens,
        "training_seconds": round(outcome.seconds, 3),
        "precision": outcome.precision,
        "compiled": outcome.compiled,
        "parameters": count_parameters(module),
        "peak_memory_mib": None if peak is None else round(peak, 1),
    }


def count_parameters(module: torch.nn.Module) -> int:
    """Numbers that a module learns."""
    return sum(parameter.numel() for parameter in module.parameters())


def _load(recipe: AnyRecipe | str | Path, overrides: Sequence[str]) -> AnyRecipe:
    if isinstance(recipe, AnyRecipe):
        return recipe_from(recipe.model_dump(mode="json"), overrides) if overrides else recipe
    return load_recipe(recipe, overrides)
