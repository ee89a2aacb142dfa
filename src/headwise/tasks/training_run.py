"""One training run from recipe to bundle: prepare the data, build the model, train, measure, publish.

    runs/mine/  recipe.yaml   data/   log.jsonl   checkpoints/   model/   translations/

A run directory is made once, refused when it holds another run, and resumed bit-exactly when asked. If preparing the data
fails, a directory that was made for it is taken away again: bad input leaves nothing behind.

Under torchrun every process runs this file. The first one opens the directory, prepares the data, measures and publishes; the
others read the prepared data and learn from their share of the rows.
"""

import contextlib
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from headwise.data.batching import Share
from headwise.data.filtering import FilterReport
from headwise.data.preparation import PreparedData, open_prepared, prepare_data
from headwise.data.splitting import Part
from headwise.language import say
from headwise.models.choices import build_model
from headwise.models.translation_model import TranslationModel
from headwise.planning.peak_memory import MemoryMeter
from headwise.randomness import torch_generator
from headwise.tasks.arguments import require_path
from headwise.tasks.bundle import Bundle, save_bundle
from headwise.tasks.duration import describe_duration, expect_seconds
from headwise.tasks.events import Events, Silence
from headwise.tasks.named_files import check_named_files
from headwise.tasks.part_scores import FOLDER as TRANSLATIONS
from headwise.tasks.part_scores import translate_part
from headwise.tasks.preflight import (
    check_decoding,
    check_lengths,
    check_start,
    check_test,
    explaining_memory,
    warn_of_small_corpus,
)
from headwise.tasks.recipe import Recipe, load_translation_recipe, translation_recipe_from
from headwise.tasks.result_rows import part_name
from headwise.tasks.run_beginning import RunSummary, begin_run
from headwise.tasks.translation import PackedPairs, RowShape, TranslationTask
from headwise.tasks.translator import Translator
from headwise.tasks.validation import Validation
from headwise.tasks.vocabulary_progress import watch_vocabulary
from headwise.training.disk_space import check_room
from headwise.training.loop import train as run_training
from headwise.training.precision import choose_device, choose_dtype, name_of
from headwise.training.processes import join_processes
from headwise.training.progress import TrainingResult
from headwise.training.run_directory import RunDirectory
from headwise.training.run_recipe import FILE as RECIPE
from headwise.training.run_recipe import read_run_recipe


def train(
    recipe: Recipe | str | Path,
    *,
    run: Path | str,
    resume: bool = False,
    overrides: Sequence[str] = (),
    events: Events | None = None,
    anyway: bool = False,
) -> RunSummary:
    """Train by a recipe (a value, a path or a shipped name) in a run directory; the bundle ends up in `run/model`.

    What cannot fit into memory is refused, unless `anyway`.
    """
    watcher = events or Silence()
    directory = require_path(run, "run", "runs/mine")
    with join_processes() as processes, contextlib.ExitStack() as stack:
        recipe = _checked_recipe(recipe, directory, overrides, resume=resume)
        check_start(recipe, num_processes=processes.count, anyway=anyway)
        stack.enter_context(explaining_memory(recipe.training, directory))
        opened, prepared = None, None
        if processes.is_first:
            opened, prepared = _begin(recipe, directory, watcher, resume=resume)
            stack.enter_context(opened)
        processes.ask_first(lambda: None)  # the others wait until the data is there
        if prepared is None:
            prepared = open_prepared(directory / "data")
        meter = MemoryMeter(choose_device(recipe.training.device))
        meter.start_building()
        model = _new_model(recipe, prepared)
        task = TranslationTask(model, recipe.training.objective.label_smoothing)
        shape = row_shape(recipe, prepared)
        if opened is not None:
            check_room(opened.path, model, recipe.training)
            warn_of_small_corpus(recipe.training, shape, prepared.train)
        watcher.note(_describe_start(recipe, prepared, model, shape))
        share = Share(processes.number, processes.count, recipe.training.accumulation)
        batches = PackedPairs(
            prepared.train, shape, recipe.training.seed, prepared.fingerprint, share
        )
        meter.start_running()
        outcome = run_training(
            task,
            batches,
            recipe.training_as_run,
            opened,
            evaluate=_evaluation(recipe, prepared, task, shape, directory),
            progress=watcher.training,
            processes=processes,
        )
        results = _training_results(model, outcome, meter.peak())
        if opened is not None:
            # The model is safe on disk before it is measured: whatever goes wrong while translating, training was not in vain.
            save_bundle(
                opened.model,
                recipe=recipe,
                tokenizers=prepared.tokenizers,
                model=model,
                results=results,
            )
            results |= _test_results(recipe, prepared, model, directory, watcher)
            save_bundle(
                opened.model,
                recipe=recipe,
                tokenizers=prepared.tokenizers,
                model=model,
                results=results,
            )
    return RunSummary(directory, recipe, results)


def _checked_recipe(
    recipe: Recipe | str | Path, directory: Path, overrides: Sequence[str], *, resume: bool
) -> Recipe:
    """What can be wrong with a recipe on this machine is said before anything is made."""
    if resume and (directory / RECIPE).exists():
        read_run_recipe(
            directory / RECIPE
        )  # its damage is told before it may be taken for a recipe of the caller's
    if not isinstance(recipe, Recipe):
        recipe = load_translation_recipe(recipe, overrides)
    elif overrides:
        recipe = translation_recipe_from(recipe.model_dump(mode="json"), overrides)
    choose_device(recipe.training.device)
    return recipe


def _begin(
    recipe: Recipe, directory: Path, watcher: Events, *, resume: bool
) -> tuple[RunDirectory, PreparedData]:
    """Open the run and prepare its data."""
    return begin_run(
        directory, recipe, lambda: prepare(recipe, directory / "data", watcher), resume=resume
    )


def check_run(
    recipe: Recipe,
    *,
    directory: Path,
    events: Events | None = None,
    recipe_name: str = "RECIPE",
    anyway: bool = False,
) -> RunSummary:
    """Prepare the data of a recipe, build its model and say how long it would learn, but train nothing.

    `directory` is thrown away by the caller.
    """
    watcher = events or Silence()
    choose_device(recipe.training.device)
    check_start(recipe, num_processes=int(os.environ.get("WORLD_SIZE", "1")), anyway=anyway)
    prepared = prepare(recipe, directory, watcher)
    model = _new_model(recipe, prepared)
    shape = row_shape(recipe, prepared)
    warn_of_small_corpus(recipe.training, shape, prepared.train)
    watcher.note(_describe_start(recipe, prepared, model, shape))
    results = {"pairs": len(prepared.train), "parameters": count_parameters(model)}
    if (seconds := expect_seconds(recipe, model, shape)) is not None:
        watcher.note(describe_duration(seconds, recipe_name))
        results["expected_seconds"] = round(seconds)
    return RunSummary(None, recipe, results)


def prepare(recipe: Recipe, directory: Path, watcher: Events) -> PreparedData:
    """The data of a recipe, made or opened, with all that can be wrong with it said."""
    check_named_files(recipe)
    watcher.note(say("preparing the data …", "正在准备数据……"))
    check_test(recipe)
    labels = {
        "survey": say("pairs looked through", "已浏览句对"),
        "train": say("training pairs", "训练句对"),
        "valid": say("validation pairs", "验证句对"),
    }
    prepared = prepare_data(
        recipe.data,
        recipe.text,
        directory,
        earlier_seed=recipe.training.seed,
        progress=lambda part, done: watcher.count(labels.get(part, part), done, None),
        vocabulary_progress=watch_vocabulary(watcher),
    )
    watcher.note(FilterReport.from_json(prepared.train.details["report"]).describe())
    check_lengths(recipe, prepared)
    check_decoding(recipe, prepared)
    return prepared


def _new_model(recipe: Recipe, prepared: PreparedData) -> TranslationModel:
    return build_model(
        recipe.model,
        source_size=prepared.tokenizers.source.size,
        target_size=prepared.tokenizers.target.size,
        generator=torch_generator(recipe.training.seed, "weights"),
    )


def row_shape(recipe: Recipe, prepared: PreparedData) -> RowShape:
    """Rows that hold `training.batch_tokens` target tokens, at least one."""
    rows = max(1, round(recipe.training.batch_tokens / prepared.target_row))
    return RowShape(rows, prepared.source_row, prepared.target_row)


def count_parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _describe_start(
    recipe: Recipe, prepared: PreparedData, model: TranslationModel, shape: RowShape
) -> str:
    pairs, parameters = len(prepared.train), count_parameters(model)
    precision = name_of(
        choose_dtype(recipe.training.precision, choose_device(recipe.training.device))
    )
    pair = f"{recipe.data.source} → {recipe.data.target}"
    return say(
        f"{pair}: {pairs:,} pairs, vocabulary {prepared.tokenizers.target.size:,}, {parameters:,} parameters; "
        f"a batch is {shape.rows} rows of {shape.source} + {shape.target} tokens; {recipe.training.steps:,} steps in {precision}",
        f"{pair}：{pairs:,} 句对，词表 {prepared.tokenizers.target.size:,}，参数 {parameters:,}；"
        f"每批 {shape.rows} 行，每行 {shape.source} + {shape.target} 词元；共 {recipe.training.steps:,} 步，{precision}",
    )


def _evaluation(
    recipe: Recipe, prepared: PreparedData, task: TranslationTask, shape: RowShape, directory: Path
) -> Validation | None:
    """What the loop calls to validate; nothing where there is no validation set."""
    if prepared.valid is None:
        return None
    return Validation(
        recipe,
        task,
        prepared.valid,
        shape,
        partial(_translator, recipe, prepared, task.module, directory),
    )


def _translator(
    recipe: Recipe, prepared: PreparedData, model: TranslationModel, directory: Path
) -> Translator:
    return Translator(
        Bundle(directory, recipe, prepared.tokenizers, model, {}), device=recipe.training.device
    )


def _training_results(
    model: TranslationModel, outcome: TrainingResult, peak: float | None
) -> dict[str, Any]:
    """How training ended, for the model card."""
    return {
        "steps": outcome.step,
        "stopped_by": outcome.reason,
        "weights": outcome.weights,
        "target_tokens": outcome.target_tokens,
        "training_seconds": round(outcome.seconds, 1),
        "precision": outcome.precision,
        "compiled": outcome.compiled,
        "parameters": count_parameters(model),
        "peak_memory_mib": None if peak is None else round(peak, 1),
    }


def _test_results(
    recipe: Recipe,
    prepared: PreparedData,
    model: TranslationModel,
    directory: Path,
    watcher: Events,
) -> dict[str, Any]:
    """The scores of the validation and test sets, for the model card."""
    results: dict[str, Any] = {}
    translator = _translator(recipe, prepared, model.eval(), directory)
    parts: tuple[Part, ...] = ("valid", "test")
    for part in parts:
        if recipe.data.corpora(part):
            watcher.note(
                say(f"translating the {part_name(part)} …", f"正在翻译{part_name(part)}……")
            )
            translated = translate_part(translator, recipe, part)
            translated.save(directory / TRANSLATIONS, part)
            results[part] = translated.as_dict()
    return results
