"""A recipe: one YAML file that says what is read, what is built, how it learns and how it answers.

Every mechanism of the library is a word (`kind: …`) in a recipe. A recipe never names code, an import path or a URL to
execute. The resolved recipe, every default written out, is saved with the weights; feeding it back repeats the run.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from headwise.blocks.choices import check_recomputing
from headwise.data.pairs.choices import DataSettings
from headwise.decoding.choices import DecodingSettings
from headwise.decoding.search.beam import BeamSettings
from headwise.errors import SettingsError
from headwise.models.choices import EncoderDecoderSettings, ModelSettings
from headwise.models.limits import check_buckets, check_rows, source_limits, target_limits
from headwise.models.recurrent.choices import RecurrentTranslatorSettings
from headwise.settings import (
    Settings,
    apply_overrides,
    check_settings,
    overrides_name,
    read_settings_file,
)
from headwise.settings.added_kinds import describe_words
from headwise.tasks.arguments import require_texts
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.tasks.language.recipe import LanguageRecipe
from headwise.tasks.pretraining.elmo_recipe import BidirectionalRecipe
from headwise.tasks.pretraining.masked_recipe import MaskedRecipe
from headwise.tasks.recipe_files import find_recipe
from headwise.tasks.recurrent_training import check_word_by_word, train_word_by_word
from headwise.tasks.word_vectors.recipe import WordVectorRecipe
from headwise.text.choices import SentencePieceSettings, TextSettings
from headwise.training.choices import TrainingSettings

METRICS = ("loss", "perplexity", "bleu", "chrf")
"""What a validation measures."""


class EvaluationSettings(Settings):
    """How the model is measured, while it learns and at the end."""

    validation_sentences: int = Field(default=200, ge=0, le=1_000_000)
    """At each validation also translate the first so many sentences greedily, for BLEU and chrF; 0 measures the loss alone."""
    pretokenized: bool = False
    """The text is tokenised already: BLEU counts its tokens as they stand."""
    lowercase: bool = False
    """Ignore upper and lower case."""


class Recipe(Settings):
    """A translator, from its text to its answers."""

    task: Literal["translation"] = "translation"
    """What the model is for."""
    data: DataSettings
    """The parallel text it learns from and is measured on."""
    text: TextSettings = SentencePieceSettings()
    """How text becomes tokens."""
    model: ModelSettings = EncoderDecoderSettings()
    """What is built."""
    training: TrainingSettings = TrainingSettings()
    """How it learns."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """How it is measured."""
    decoding: DecodingSettings = BeamSettings()
    """How it answers."""

    @model_validator(mode="after")
    def _check_sharing(self) -> Self:
        if self.model.embedding.tied == "all" and not self.text.shared:
            raise SettingsError(
                "model.embedding.tied=all needs one vocabulary for both languages; "
                "set text.shared=true, or model.embedding.tied=output",
                "model.embedding.tied=all 要求两种语言共用词表；请设 text.shared=true，或 model.embedding.tied=output",
            )
        self._check_kind()
        # Source rows are in the proportion of the languages, which only the text knows.
        source = (
            "data.row_tokens, and source rows may be longer",
            "data.row_tokens，源语言行可能更长",
        )
        check_rows(
            source_limits(self.model),
            self.data.row_tokens,
            rows=source,
            enough=2 * self.data.row_tokens,
        )
        check_rows(
            target_limits(self.model),
            self.data.row_tokens,
            rows=("data.row_tokens", "data.row_tokens"),
        )
        if isinstance(self.model, EncoderDecoderSettings):
            check_buckets(self.model, self.data.row_tokens)
            check_recomputing(self.model.norm, self.training.recompute)
        if self.training.keep.best not in METRICS:
            raise SettingsError(
                f"training.keep.best is {self.training.keep.best!r}; validation measures {', '.join(METRICS)}: choose one",
                f"training.keep.best 为 {self.training.keep.best!r}；验证只度量 {'、'.join(METRICS)}：请选其一",
            )
        best = self.training.keep.best
        if best in ("bleu", "chrf") and self.evaluation.validation_sentences == 0:
            raise SettingsError(
                f"training.keep.best={best} needs translations to score; set evaluation.validation_sentences, e.g. 500",
                f"training.keep.best={best} 需要译文才能计分；请设 evaluation.validation_sentences，例如 500",
            )
        return self

    def _check_kind(self) -> None:
        if isinstance(self.model, RecurrentTranslatorSettings):
            check_word_by_word(self.training)

    @property
    def training_as_run(self) -> TrainingSettings:
        """With what `auto` can only mean for this model."""
        if isinstance(self.model, EncoderDecoderSettings):
            return self.training
        return train_word_by_word(self.training)


AnyRecipe = (
    Recipe | LanguageRecipe | WordVectorRecipe | LabelRecipe | MaskedRecipe | BidirectionalRecipe
)
"""A recipe of any task. Translation is the main job: its type is simply `Recipe`."""
TASKS = (
    "translation",
    "language_modeling",
    "word_vectors",
    "classification",
    "tagging",
    "masked_language",
    "bidirectional_language",
)


def load_recipe(name: str | Path, overrides: Sequence[str] = ()) -> AnyRecipe:
    """A checked recipe of any task from a path or a shipped name, with `key.path=value` changes."""
    path = find_recipe(name)
    before = read_settings_file(path)
    return check_recipe(_change(before, overrides), file=path, before=before if overrides else None)


def recipe_from(data: dict[str, Any], overrides: Sequence[str] = ()) -> AnyRecipe:
    """A checked recipe from plain data, as written in Python."""
    return check_recipe(_change(data, overrides))


def _change(data: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    return apply_overrides(data, require_texts(overrides, "overrides"), settings=_type_of(data))


def _type_of(data: Mapping[str, Any]) -> type[AnyRecipe] | None:
    """The recipe type of the task that the data names; without one it is a translation."""
    match data.get("task", "translation"):
        case "language_modeling":
            return LanguageRecipe
        case "word_vectors":
            return WordVectorRecipe
        case "classification" | "tagging":
            return LabelRecipe
        case "masked_language":
            return MaskedRecipe
        case "bidirectional_language":
            return BidirectionalRecipe
        case "translation":
            return Recipe
        case _:
            return None


def check_recipe(
    data: Mapping[str, Any],
    *,
    file: Path | str | None = None,
    before: Mapping[str, Any] | None = None,
) -> AnyRecipe:
    """The recipe of whatever task the data names; without one it is a translation. `before`: as it stands in the file."""
    found = _type_of(data)
    if found is None:
        raise SettingsError(
            f"task: must be {' or '.join(map(repr, TASKS))}, not {data['task']!r:.60}",
            f"task：必须是 {' 或 '.join(map(repr, TASKS))}，而不是 {data['task']!r:.60}",
            file=file if before is None or before.get("task") == data["task"] else overrides_name(),
        )
    return check_settings(found, data, file=file, before=before)


def load_translation_recipe(name: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """`load_recipe` for what only translators can do."""
    return require_translation(load_recipe(name, overrides))


def translation_recipe_from(data: dict[str, Any], overrides: Sequence[str] = ()) -> Recipe:
    return require_translation(recipe_from(data, overrides))


def require_translation(recipe: AnyRecipe) -> Recipe:
    if not isinstance(recipe, Recipe):
        raise SettingsError(
            f"the recipe's task is {recipe.task}; a recipe of task translation is needed here, e.g. `base` or `multi30k-en-de`; "
            "parameters, time and memory of this one: `headwise train RECIPE --check`, which trains nothing",
            f"该配方的任务是 {recipe.task}；此处需要 translation 任务的配方，例如 `base` 或 `multi30k-en-de`；"
            "要看该配方的参数量、时间和内存，请用 `headwise train RECIPE --check`（不训练）",
        )
    return recipe


def complete_recipe(data: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe saved by an older version, with the settings that came later at their defaults."""
    return check_recipe(data).model_dump(mode="json")


def write_recipe(recipe: AnyRecipe) -> str:
    """The resolved recipe as YAML; `load_recipe` of it gives an equal recipe.

    Where it uses words of other packages, the packages are written down too.
    """
    data = {**recipe.model_dump(mode="json"), **describe_words(recipe)}
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
