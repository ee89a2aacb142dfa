"""The recipe of a language model: its text, tokenizer, model, training and evaluation."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from headwise.blocks.choices import check_recomputing
from headwise.data.text.choices import TextDataSettings
from headwise.errors import SettingsError
from headwise.models.choices import DecoderOnlySettings, LanguageModelSettings
from headwise.models.limits import check_buckets, check_rows, row_limits
from headwise.models.neural_ngram import NeuralNgramSettings
from headwise.models.ngram import NgramSettings
from headwise.models.segment_memory import CarriedMemory
from headwise.settings import Settings
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.declared_results import Result, mean_loss, perplexity
from headwise.tasks.language.form import FORM
from headwise.text.choices import TextSettings, WordSettings
from headwise.training.choices import TrainingSettings


class SentenceReading(Settings):
    """Every line is a sentence by itself."""

    kind: Literal["sentences"] = "sentences"
    row_tokens: int = Field(default=128, ge=2, le=65536)
    """Tokens of a row, which holds several sentences; a longer line is read in pieces."""


class StreamReading(Settings):
    """The lines are one text, an end of sentence after each."""

    kind: Literal["stream"] = "stream"
    length: int = Field(default=35, ge=1, le=65536)
    """Tokens of a window: as far as gradients go back, and as far as a Transformer without
    `model.memory` looks."""


ReadingSettings = Annotated[SentenceReading | StreamReading, Field(discriminator="kind")]


class LanguageRecipe(AnyRecipe):
    """A language model, from its text to its weights."""

    bundle_form: ClassVar = FORM
    metrics: ClassVar = {
        "loss": mean_loss(),
        "perplexity": perplexity(
            detail=(
                "{predictions:,} predictions, {unknown:,} of them unknown words",
                "{predictions:,} 次预测，其中未知词 {unknown:,} 个",
            )
        ),
    }
    results: ClassVar = {
        "lines": Result(("lines of text", "文本行数")),
        "tokens": Result(("tokens of text", "文本词元")),
        "vocabulary": Result(("vocabulary", "词表大小")),
        "ngrams": Result(("n-grams of each order", "各阶 n 元语法数"), "counts"),
        "counting_seconds": Result(("of that, counting", "其中计数用时"), "time"),
    }

    task: Literal["language_modeling"] = "language_modeling"
    """What the model is for."""
    data: TextDataSettings
    """The text it learns from and is measured on."""
    text: TextSettings = WordSettings()
    """How text becomes tokens."""
    tokenizer: Path | None = None
    """A model (its bundle or run) whose tokenizer is taken over instead of learning one; of a
    translator that of its target language. `text` must be the same in both recipes."""
    reading: ReadingSettings = SentenceReading()
    """How tokens become rows; n-grams read sentences."""
    model: LanguageModelSettings = NgramSettings()
    """What is built."""
    training: TrainingSettings = TrainingSettings()
    """How it learns; n-grams are counted, and take nothing but the seed of the tokenizer from
    here."""

    @model_validator(mode="after")
    def _check_counting(self) -> Self:
        if isinstance(self.model, NgramSettings):
            unused = self.training.model_copy(update={"seed": TrainingSettings().seed})
            if unused != TrainingSettings():
                default = TrainingSettings()
                names = [
                    name
                    for name in type(default).model_fields
                    if getattr(unused, name) != getattr(default, name)
                ]
                raise SettingsError(
                    f"training.{names[0]} is set, but n-grams are counted, not trained; leave it "
                    "out",
                    f"设置了 training.{names[0]}，但 n 元语法靠计数而非训练；请去掉",
                )
        return self

    @model_validator(mode="after")
    def _check_memory(self) -> Self:
        model, reading = self.model, self.reading
        if not isinstance(model, DecoderOnlySettings) or not isinstance(
            model.memory, CarriedMemory
        ):
            return self
        if not isinstance(reading, StreamReading):
            raise SettingsError(
                f"model.memory.kind={model.memory.kind} remembers the text before a window, but "
                f"reading.kind={reading.kind} packs sentences that do not follow each other; use "
                "reading.kind=stream",
                f"model.memory.kind={model.memory.kind} 记住窗口之前的文本，而 "
                f"reading.kind={reading.kind} 把互不相接的句子装在一行；请用 reading.kind=stream",
            )
        longest = max(model.memory.length + reading.length, model.memory.reach + 1)
        key = "reading.length + model.memory.length"
        check_rows(row_limits(model), longest, rows=(key, key))
        return self

    @model_validator(mode="after")
    def _check_reading(self) -> Self:
        if isinstance(self.reading, StreamReading) and isinstance(
            self.model, NgramSettings | NeuralNgramSettings
        ):
            raise SettingsError(
                f"reading.kind=stream, but model.kind={self.model.kind} sees "
                f"{self.model.order - 1} words and reads sentences; use reading.kind=sentences, "
                "or model.kind=recurrent or decoder_only",
                f"reading.kind=stream，但 model.kind={self.model.kind} 只看 "
                f"{self.model.order - 1} 个词，按句阅读；请用 reading.kind=sentences，或 "
                "model.kind=recurrent、decoder_only",
            )
        window = (
            self.reading.length
            if isinstance(self.reading, StreamReading)
            else self.reading.row_tokens
        )
        if isinstance(self.model, DecoderOnlySettings):
            key = (
                "reading.length"
                if isinstance(self.reading, StreamReading)
                else "reading.row_tokens"
            )
            check_buckets(self.model, window)
            check_recomputing(self.model.norm, self.training.recompute)
            check_rows(row_limits(self.model), window, rows=(key, key))
        return self
