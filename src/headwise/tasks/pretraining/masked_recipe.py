"""The recipe of masked language modelling (BERT): unlabelled text, masking, and the encoder."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from headwise.data.text.choices import MaskingSettings, TextDataSettings
from headwise.errors import SettingsError
from headwise.models.sentence_encoder import TransformerEncoderSettings
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.declared_results import Result, Results, accuracy, mean_loss
from headwise.tasks.labels.recipe import check_encoder_settings
from headwise.tasks.pretraining.forms import MASKED_FORM
from headwise.text.choices import TextSettings, WordSettings
from headwise.training.choices import TrainingSettings


class MaskedDataSettings(TextDataSettings):
    """The text, in rows."""

    row_tokens: int = Field(default=128, ge=4, le=65536)
    """Tokens of a row, in which short lines stand together; a longer line goes on in a new row."""


class MaskedRecipe(AnyRecipe):
    """An encoder that learns from text alone, for others to start from."""

    bundle_form: ClassVar = MASKED_FORM
    metrics: ClassVar = {
        "loss": mean_loss(("loss of a masked token", "损失（每个被掩码的词元）")),
        "accuracy": accuracy(
            (
                "Share of the masked tokens of the validation set that the model predicts.",
                "验证集中被掩码的词元里，模型预测正确的比例。",
            )
        ),
        "next_sentence_accuracy": Result(
            ("next-sentence accuracy", "下一句判断准确率"),
            "share",
            "higher",
            help=(
                "Share of pairs of lines of which the model tells whether they stand in a row.",
                "模型能正确判断两行是否相连的行对的比例。",
            ),
        ),
    }
    results: ClassVar = {
        "lines": Result(("lines of text", "文本行数")),
        "tokens": Result(("tokens of text", "文本词元")),
        "vocabulary": Result(("vocabulary", "词表大小")),
    }

    task: Literal["masked_language"] = "masked_language"
    """What the model is for."""
    data: MaskedDataSettings
    """The text it learns from and is measured on."""
    text: TextSettings = WordSettings()
    """How text becomes tokens."""
    masking: MaskingSettings = MaskingSettings()
    """What is hidden."""
    second_task: Literal["none", "next_sentence"] = "none"
    """What is learnt beside masked tokens: whether one line follows another in the text, or
    nothing."""
    model: TransformerEncoderSettings = TransformerEncoderSettings()
    """What is built."""
    training: TrainingSettings = TrainingSettings()
    """How it learns."""

    @property
    def validated_metrics(self) -> Results:
        found = dict(super().validated_metrics)
        if self.second_task == "none":
            del found["next_sentence_accuracy"]
        return found

    @model_validator(mode="after")
    def _check_encoder(self) -> Self:
        if self.masking.hidden + self.masking.random > 1:
            raise SettingsError(
                "masking.hidden + masking.random is more than 1; make one of them smaller",
                "masking.hidden 与 masking.random 之和大于 1；请减小其一",
            )
        if self.model.letters > 0:
            raise SettingsError(
                "model.letters would show the letters of masked tokens; set it to 0",
                "model.letters 会泄露被掩码的词元的字母；请设为 0",
            )
        if (self.second_task == "next_sentence") != self.model.halves:
            raise SettingsError(
                f"second_task={self.second_task} with "
                f"model.halves={str(self.model.halves).lower()}; pairs of sentences need the "
                "vectors that tell them apart, and they are learnt from pairs alone: set both "
                "(next_sentence, true) or neither (none, false)",
                f"second_task={self.second_task} 而 "
                f"model.halves={str(self.model.halves).lower()}；句对需要区分前后两句的向量，"
                "而这些向量只能从句对学得：请两者都设（next_sentence、true）或都不设（none、"
                "false）",
            )
        check_encoder_settings(self.model, self.training, row_tokens=self.data.row_tokens)
        return self
