"""Loads the models of a server: bundles by name, each as a `Translator`, `LanguageModel` and so on.

`runs/demo` and `runs/demo/model` are named demo; `pocket=runs/demo` is named pocket. Tested: every
kind, names, duplicate names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headwise.errors import UsageError
from headwise.models.inference import Precision
from headwise.models.ngram.arpa import is_arpa
from headwise.neighbours.settings import MemorySettings
from headwise.serving.work.bundle_files import BundleFiles
from headwise.serving.work.model_names import split_name
from headwise.serving.work.served_models import SERVED_MODELS
from headwise.settings import read_settings_file
from headwise.tasks.accepted_models import task_of_bundle
from headwise.tasks.labels.labeller import Labeller
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.translation.bundle import require_one_direction
from headwise.tasks.translation.translator import Translator
from headwise.tasks.word_vectors.bundle import load_word_vectors
from headwise.training.precision import Device

Kind = Literal["translator", "language_model", "word_vectors", "classifier", "tagger"]


@dataclass(frozen=True)
class LoadedModel:
    """A model and its name; `value` is a Translator, LanguageModel, VectorSpace or Labeller."""

    name: str
    kind: Kind
    value: Any
    directory: Path | None = None
    language: str | None = None
    """Of a language model, as its recipe says."""
    precision: Precision = "auto"
    """As requested."""
    bundle_files: BundleFiles | None = None
    """Of a translator: its open files, from which a worker process can load it again."""
    memory: MemorySettings | None = None
    """Of a translator: the store of neighbours that takes part in its translations."""

    @property
    def languages(self) -> tuple[str, str] | None:
        """Source and target of a translator."""
        if not isinstance(self.value, Translator):
            return None
        return self.value.source_language, self.value.target_language


def load_models(
    given: Sequence[str], *, device: Device = "auto", precision: Precision = "auto"
) -> dict[str, LoadedModel]:
    """Load models given as DIR or NAME=DIR; by name, in the order given."""
    models: dict[str, LoadedModel] = {}
    for one in given:
        name, directory = split_name(one)
        if name in models:
            raise UsageError(
                f"two models are called {name!r}; name one of them, e.g. other={directory}",
                f"有两个模型都叫 {name!r}；请为其中一个命名，例如 other={directory}",
            )
        models[name] = load_model(name, directory, device=device, precision=precision)
    return models


def load_model(
    name: str, directory: Path, *, device: Device = "auto", precision: Precision = "auto"
) -> LoadedModel:
    """Load a bundle as its task requires, or an ARPA file."""
    if is_arpa(directory):
        return LoadedModel(name, "language_model", LanguageModel.load(directory), directory)
    path = SERVED_MODELS.find(directory)
    task = task_of_bundle(path)
    match task:
        case "translation":
            files = BundleFiles(path)
            translator = Translator.load(path, device=device, precision=precision)
            require_one_direction(translator.recipe.data, path)
            files.check_unchanged()
            return LoadedModel(
                name, "translator", translator, path, precision=precision, bundle_files=files
            )
        case "language_modeling":
            model = LanguageModel.load(path)
            language = read_settings_file(path / "recipe.yaml")["data"]["language"]
            return LoadedModel(name, "language_model", model, path, language)
        case "word_vectors":
            return LoadedModel(name, "word_vectors", load_word_vectors(path).space, path)
        case "classification" | "tagging":
            kind: Kind = "classifier" if task == "classification" else "tagger"
            return LoadedModel(name, kind, Labeller.load(path, device=device), path)
        case _:
            raise SERVED_MODELS.explain(task, path)  # of a package that borrows one of the forms
