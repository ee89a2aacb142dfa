"""The recipe of a translator: its data, tokenizers, model, training, decoding and evaluation."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from headwise.blocks.choices import check_recomputing
from headwise.data.pairs.choices import DataSettings
from headwise.decoding.choices import DecodingSettings
from headwise.decoding.search.beam import BeamSettings
from headwise.errors import SettingsError
from headwise.models.choices import EncoderDecoderSettings, ModelSettings
from headwise.models.limits import check_buckets, check_rows, source_limits, target_limits
from headwise.models.recurrent.choices import RecurrentTranslatorSettings
from headwise.settings import Settings
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.bundle_form import BundleForm
from headwise.tasks.recurrent_training import check_word_by_word, train_word_by_word
from headwise.tasks.translation.declared_results import METRICS, RESULTS
from headwise.text.choices import SentencePieceSettings, TextSettings
from headwise.training.choices import TrainingSettings


class EvaluationSettings(Settings):
    """How the model is measured, while it learns and at the end."""

    validation_sentences: int = Field(default=200, ge=0, le=1_000_000)
    """At each validation also translate the first so many sentences greedily, for BLEU and chrF; 0
    measures the loss alone."""
    pretokenized: bool = False
    """The text is tokenised already: BLEU counts its tokens as they stand."""
    lowercase: bool = False
    """Ignore upper and lower case."""


class TranslationRecipe(AnyRecipe):
    """A translator, from its text to its answers."""

    bundle_form: ClassVar = BundleForm(("a translator", "翻译模型"), "pocket", is_demo=True)
    metrics: ClassVar = METRICS
    results: ClassVar = RESULTS

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
                "model.embedding.tied=all 要求两种语言共用词表；请设 text.shared=true，或 "
                "model.embedding.tied=output",
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
        best = self.training.keep.best
        if best in ("bleu", "chrf") and self.evaluation.validation_sentences == 0:
            raise SettingsError(
                f"training.keep.best={best} needs translations to score; set "
                "evaluation.validation_sentences, e.g. 500",
                f"training.keep.best={best} 需要译文才能计分；请设 "
                "evaluation.validation_sentences，例如 500",
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
