"""Types for the options that name models.

    parser.add_argument("--model", type=TranslatorPath)

Each type says which tasks the command is for, by the `AcceptedModels` of a task
(tasks/accepted_models.py). path_checks.py refuses a model of another task before it looks for any
other file and before torch is loaded.

Tested with every command and a model of every task (tests/cli/options/test_model_paths.py).
"""

from pathlib import Path
from typing import TYPE_CHECKING

from headwise.cli.options.paths import Input, InputFile, RecipeName, SentenceFile

if TYPE_CHECKING:
    from headwise.tasks.accepted_models import AcceptedModels


class ModelPath(Input):
    """A bundle of any task, or a run directory with a bundle; subclasses are for some tasks."""

    takes_checkpoint = False

    def accepted(self) -> "AcceptedModels | None":
        """Which models are accepted; None: all."""
        return None

    def locate(self) -> Path | None:
        from headwise.tasks.bundle_directory import find_bundle

        accepted = self.accepted()
        if accepted is None:
            return find_bundle(Path(self))
        return accepted.find(Path(self), takes_checkpoint=self.takes_checkpoint)

    def check_task(self, task: str, path: Path) -> None:
        """Refuse a bundle or run of a task that is not accepted."""
        accepted = self.accepted()
        if accepted is not None:
            accepted.check(task, path)


class TranslatorPath(ModelPath):
    """A translator."""

    def accepted(self) -> "AcceptedModels":
        from headwise.tasks.translation.form import TRANSLATORS

        return TRANSLATORS


class TranslatorOrCheckpoint(TranslatorPath):
    """A translator; with the option --checkpoint also a run that is not finished."""

    takes_checkpoint = True


class LanguageBundlePath(ModelPath):
    """A language model trained by Headwise."""

    def accepted(self) -> "AcceptedModels":
        from headwise.tasks.language.form import LANGUAGE_MODELS

        return LANGUAGE_MODELS


class LanguageModelPath(LanguageBundlePath):
    """A language model: a bundle, a run or an ARPA file."""

    takes_checkpoint = True

    def locate(self) -> Path | None:
        from headwise.models.ngram.arpa import is_arpa

        return InputFile(self).locate() if is_arpa(Path(self)) else super().locate()


class PredictorPath(LanguageModelPath):
    """A language model or a masked one."""

    def accepted(self) -> "AcceptedModels":
        from headwise.tasks.pretraining.forms import PREDICTORS

        return PREDICTORS


class MemoryModelPath(ModelPath):
    """A model that can have a memory of neighbours."""

    def accepted(self) -> "AcceptedModels":
        from headwise.tasks.memory_models import MEMORY_MODELS

        return MEMORY_MODELS


class LabelModelPath(ModelPath):
    """A classifier or tagger: the one that `command` is for."""

    takes_checkpoint = True
    command: str

    def accepted(self) -> "AcceptedModels":
        from headwise.tasks.labels.form import LABELLERS

        return LABELLERS

    def locate(self) -> Path | None:
        from headwise.tasks.accepted_models import task_of_bundle

        path = super().locate()
        if path is not None:
            self.check_task(task_of_bundle(path), path)
        return path

    def check_task(self, task: str, path: Path) -> None:
        from headwise.tasks.accepted_models import check_command

        super().check_task(task, path)
        check_command(task, self, command=self.command)


class ClassifierPath(LabelModelPath):
    """A classifier."""

    command = "classify"


class TaggerPath(LabelModelPath):
    """A tagger."""

    command = "tag"


class WordVectorModelPath(ModelPath):
    """Word vectors."""

    def accepted(self) -> "AcceptedModels":
        from headwise.tasks.word_vectors.form import VECTOR_BUNDLES

        return VECTOR_BUNDLES


class WordReaderPath(ModelPath):
    """A model with contextual or static vectors of words."""

    takes_checkpoint = True

    def accepted(self) -> "AcceptedModels":
        from headwise.tasks.pretraining.forms import WORD_READERS

        return WORD_READERS


class ExportedPath(ModelPath):
    """A model that can be written into `output`, whose name decides the format."""

    output = ""

    @classmethod
    def into(cls, output: str, model: str) -> "ExportedPath":
        path = cls(model)
        path.output = output
        return path

    def accepted(self) -> "AcceptedModels":
        from headwise.exporting.exported_models import exported_models

        return exported_models(Path(self.output))


class ServedModelPath(ModelPath):
    """A model of a server: DIR, an ARPA file, or NAME=DIR."""

    def accepted(self) -> "AcceptedModels":
        from headwise.serving.work.served_models import SERVED_MODELS

        return SERVED_MODELS

    def locate(self) -> Path | None:
        from headwise.models.ngram.arpa import is_arpa
        from headwise.serving.work.model_names import split_name

        _, path = split_name(self)
        return InputFile(path).locate() if is_arpa(path) else self.accepted().find(path)


class TranslatorOrText(TranslatorPath):
    """A directory is a translator, anything else a file of translations."""

    def locate(self) -> Path | None:
        from headwise.tasks.bundle_directory import is_place_of_model

        return super().locate() if is_place_of_model(Path(self)) else SentenceFile(self).locate()


class ModelOrRecipe(ModelPath):
    """A directory is a model, anything else a recipe."""

    def locate(self) -> Path | None:
        from headwise.tasks.bundle_directory import is_place_of_model

        return super().locate() if is_place_of_model(Path(self)) else RecipeName(self).locate()


class UnfinishedRun(Input):
    """The run of a model that may not be finished, as --checkpoint takes it."""

    model: ModelPath

    @classmethod
    def of(cls, model: ModelPath) -> "UnfinishedRun":
        run = cls(model)
        run.model = model
        return run

    def locate(self) -> Path | None:
        from headwise.settings import DEFAULT_TASK
        from headwise.tasks.bundle_directory import require_run
        from headwise.training.run_recipe import FILE, read_run_recipe

        path = require_run(Path(self))
        if (path / FILE).is_file():
            recipe = read_run_recipe(path / FILE)  # damage is not taken for another task
            self.model.check_task(recipe.get("task", DEFAULT_TASK), path)
        return path
