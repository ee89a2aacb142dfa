"""The recipe of a language model: text of one language, how it is cut, what is built, how it learns."""

from typing import Literal, Self

from pydantic import model_validator

from headwise.data.texts import TextDataSettings
from headwise.errors import SettingsError
from headwise.models.choices import LanguageModelSettings
from headwise.models.ngram import NgramSettings
from headwise.settings import Settings
from headwise.text.choices import TextSettings, WordSettings
from headwise.training.choices import TrainingSettings


class LanguageRecipe(Settings):
    """A language model, from its text to its weights."""

    task: Literal["language_modeling"] = "language_modeling"
    """What the model is for."""
    data: TextDataSettings
    """The text it learns from and is measured on."""
    text: TextSettings = WordSettings()
    """How text becomes tokens."""
    model: LanguageModelSettings = NgramSettings()
    """What is built."""
    training: TrainingSettings = TrainingSettings()
    """How it learns; n-grams are counted, and take nothing but the seed of the tokenizer from here."""

    @model_validator(mode="after")
    def _check_counting(self) -> Self:
        if isinstance(self.model, NgramSettings):
            unused = self.training.model_copy(update={"seed": TrainingSettings().seed})
            if unused != TrainingSettings():
                default = TrainingSettings()
                names = [name for name in type(default).model_fields if getattr(unused, name) != getattr(default, name)]
                raise SettingsError(
                    f"training.{names[0]} is set, but n-grams are counted, not trained; leave it out",
                    f"设置了 training.{names[0]}，但 n 元语法靠计数而非训练；请去掉",
                )
        return self
