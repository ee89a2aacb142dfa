"""`train` and `check` for a recipe of any task: the one `match` over tasks."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from headwise.tasks.arguments import require_path
from headwise.tasks.events import Events
from headwise.tasks.frozen_weights import check_frozen
from headwise.tasks.labels import training as labelling
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.tasks.language import counting as language_modeling
from headwise.tasks.language.recipe import LanguageRecipe
from headwise.tasks.measured_corpora import note_on_measuring
from headwise.tasks.named_files import check_named_files
from headwise.tasks.pretraining import elmo as bidirectional_language
from headwise.tasks.pretraining import masked_language
from headwise.tasks.pretraining.elmo_recipe import BidirectionalRecipe
from headwise.tasks.pretraining.masked_recipe import MaskedRecipe
from headwise.tasks.recipe import AnyRecipe, Recipe, complete_recipe, load_recipe, recipe_from
from headwise.tasks.run_start import RunSummary
from headwise.tasks.translation import training as training_run
from headwise.tasks.word_vectors import run as word_vector_run
from headwise.tasks.word_vectors.recipe import WordVectorRecipe
from headwise.training.run_directory import check_directory
from headwise.training.run_recipe import FILE as RECIPE
from headwise.training.run_recipe import read_run_recipe

logger = logging.getLogger(__name__)


def train(
    recipe: AnyRecipe | str | Path,
    *,
    run: Path | str,
    resume: bool = False,
    overrides: Sequence[str] = (),
    events: Events | None = None,
    anyway: bool = False,
) -> RunSummary:
    """Learn by a recipe (a value, a path or a shipped name) in a run directory; the bundle ends up in `run/model`.

    What cannot fit into memory is refused, unless `anyway`.
    """
    held = require_path(run, "run", "runs/mine") / RECIPE
    if resume and held.exists():
        read_run_recipe(
            held
        )  # its damage is told before it may be taken for a recipe of the caller's
    loaded = _loaded(recipe, overrides)
    check_frozen(loaded)
    if not isinstance(loaded, Recipe):  # of a translation the first process asks
        check_named_files(loaded)
    notes = _tell_notes(recipe, overrides)
    return replace(
        _learn(loaded, run=run, resume=resume, events=events, anyway=anyway), notes=notes
    )


def _learn(
    loaded: AnyRecipe, *, run: Path | str, resume: bool, events: Events | None, anyway: bool
) -> RunSummary:
    match loaded:
        case LanguageRecipe() as found:
            return language_modeling.train_language_model(
                found, run=run, resume=resume, events=events
            )
        case LabelRecipe() as found:
            return labelling.train_labels(found, run=run, resume=resume, events=events)
        case MaskedRecipe() as found:
            return masked_language.train_masked(found, run=run, resume=resume, events=events)
        case BidirectionalRecipe() as found:
            return bidirectional_language.train_bidirectional(
                found, run=run, resume=resume, events=events
            )
        case WordVectorRecipe() as found:
            made = word_vector_run.train_word_vectors(found, run=run, resume=resume, events=events)
            return RunSummary(Path(run), found, made.results)
        case Recipe() as found:
            return training_run.train(found, run=run, resume=resume, events=events, anyway=anyway)


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
    """Check a recipe, its data, its memory and, if given, its run directory as `train` would; learn nothing.

    `directory` is thrown away by the caller.
    """
    found = _loaded(recipe, overrides)
    check_frozen(found)
    notes = _tell_notes(recipe, overrides)
    if run is not None and not isinstance(found, WordVectorRecipe):
        path = require_path(run, "run", "runs/mine")
        check_directory(
            path, found.model_dump(mode="json"), resume=resume, complete=complete_recipe
        )
    if not isinstance(found, Recipe):
        check_named_files(found)
    name = "RECIPE" if isinstance(recipe, AnyRecipe) else str(recipe)
    return replace(
        _check(found, directory=directory, events=events, recipe_name=name, anyway=anyway),
        notes=notes,
    )


def _check(
    found: AnyRecipe, *, directory: Path, events: Events | None, recipe_name: str, anyway: bool
) -> RunSummary:
    match found:
        case LanguageRecipe():
            return language_modeling.check_language_run(found, events=events)
        case LabelRecipe():
            return labelling.check_label_run(found, events=events)
        case MaskedRecipe():
            return masked_language.check_masked_run(found, events=events)
        case BidirectionalRecipe():
            return bidirectional_language.check_bidirectional_run(found, events=events)
        case WordVectorRecipe():
            return RunSummary(None, found, word_vector_run.check_word_vectors(found, events=events))
        case Recipe():
            return training_run.check_run(
                found,
                directory=directory,
                events=events,
                recipe_name=recipe_name,
                anyway=anyway,
            )


def _tell_notes(recipe: AnyRecipe | str | Path, overrides: Sequence[str]) -> tuple[str, ...]:
    """What must be known of the results, told before anything is learnt; they are returned to stand beside them."""
    note = note_on_measuring(recipe, overrides)
    if note is None:
        return ()
    logger.warning("%s", note)
    return (note,)


def _loaded(recipe: AnyRecipe | str | Path, overrides: Sequence[str]) -> AnyRecipe:
    if isinstance(recipe, AnyRecipe):
        return recipe_from(recipe.model_dump(mode="json"), overrides) if overrides else recipe
    return load_recipe(recipe, overrides)
