"""The recipe of classifiers (one label a text, N → 1) and taggers (one label a word, N → N)."""

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from headwise.blocks.choices import check_recomputing, name_plain_norms
from headwise.data.labels.choices import LabelDataSettings, Shape
from headwise.errors import SettingsError
from headwise.models.limits import check_buckets, check_rows, row_limits
from headwise.models.sentence_encoder import (
    ElmoSettings,
    RecurrentEncoderSettings,
    SentenceEncoderSettings,
    TransformerEncoderSettings,
)
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.declared_results import Result, accuracy, mean_loss
from headwise.tasks.labels.form import FORM
from headwise.tasks.recurrent_training import check_word_by_word, train_word_by_word
from headwise.text.choices import TextSettings, WordSettings
from headwise.training.choices import TrainingSettings


class LabelRecipe(AnyRecipe):
    """A classifier or tagger, from its labelled text to its weights."""

    bundle_form: ClassVar = FORM
    metrics: ClassVar = {
        "loss": mean_loss(("loss of a label", "损失（每个标签）")),
        "accuracy": accuracy(
            (
                "Share of the labels of the validation set that the model gives as they are.",
                "验证集的标签中，模型给出正确标签的比例。",
            ),
            detail=("{labels:,} labels", "{labels:,} 个标签"),
        ),
        "macro_f1": Result(("macro F1", "宏平均 F1"), "share", "higher", is_validated=False),
    }
    results: ClassVar = {
        "examples": Result(("examples", "样本")),
        "classes": Result(("classes", "类别")),
        "vocabulary": Result(("vocabulary", "词表大小")),
    }

    task: Literal["classification", "tagging"] = "classification"
    """What the model is for."""
    data: LabelDataSettings
    """The labelled text it learns from and is measured on."""
    text: TextSettings = WordSettings()
    """How text becomes tokens; tagging needs words."""
    model: SentenceEncoderSettings = TransformerEncoderSettings()
    """What is built."""
    training: TrainingSettings = TrainingSettings()
    """How it learns."""

    @property
    def shape(self) -> Shape:
        return "one" if self.task == "classification" else "each"

    @property
    def training_as_run(self) -> TrainingSettings:
        """With what `auto` can only mean for this model."""
        follows_sentences = isinstance(self.model, RecurrentEncoderSettings | ElmoSettings)
        return train_word_by_word(self.training) if follows_sentences else self.training

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        if self.task == "tagging" and self.text.kind != "words":
            raise SettingsError(
                f"task=tagging gives each word a tag, but text.kind={self.text.kind} cuts words "
                "into pieces; set text.kind=words",
                f"task=tagging 为每个词给出标注，而 text.kind={self.text.kind} 会把词切开；请设 "
                "text.kind=words",
            )
        if self.model.letters > 0 and self.text.kind != "words":
            raise SettingsError(
                f"model.letters reads the letters of whole words, but text.kind={self.text.kind} "
                "cuts them; set text.kind=words, or model.letters=0",
                f"model.letters 读取整词的字母，而 text.kind={self.text.kind} 会把词切开；请设 "
                "text.kind=words，或 model.letters=0",
            )
        if isinstance(self.model, ElmoSettings) and self.text.kind != "words":
            raise SettingsError(
                f"model.kind=elmo reads whole words, but text.kind={self.text.kind} cuts them; "
                "set text.kind=words",
                f"model.kind=elmo 读取整词，而 text.kind={self.text.kind} 会把词切开；请设 "
                "text.kind=words",
            )
        check_encoder_settings(self.model, self.training, row_tokens=self.data.row_tokens)
        return self


def check_encoder_settings(
    model: SentenceEncoderSettings, training: TrainingSettings, *, row_tokens: int
) -> None:
    """Refuse settings of an encoder and its training that cannot be combined."""
    if isinstance(model, RecurrentEncoderSettings):
        check_word_by_word(training)
    if not isinstance(model, TransformerEncoderSettings):
        return
    check_buckets(model, row_tokens)
    check_rows(row_limits(model), row_tokens, rows=("data.row_tokens", "data.row_tokens"))
    if model.norm.counts_tokens and training.freeze:
        able = name_plain_norms()
        raise SettingsError(
            f"training.freeze keeps weights as they are, but norm.kind={model.norm.kind} counts "
            f"every batch; use {able[0]}",
            f"training.freeze 使权重保持不变，而 norm.kind={model.norm.kind} 会统计每一批；请用 "
            f"{able[1]}",
        )
    check_recomputing(model.norm, training.recompute)
