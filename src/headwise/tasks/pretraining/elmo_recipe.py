"""The recipe of ELMo's pre-training: text without labels, and the two language models that read it from either end."""

from typing import Literal, Self

from pydantic import model_validator

from headwise.errors import SettingsError
from headwise.models.sentence_encoder import ElmoSettings
from headwise.settings import Settings
from headwise.tasks.pretraining.masked_recipe import MaskedDataSettings
from headwise.text.choices import WordSettings
from headwise.training.choices import TrainingSettings

METRICS = ("loss", "perplexity")
"""What a validation measures: the mean over both directions."""


class BidirectionalRecipe(Settings):
    """Two language models over words, for others to start from."""

    task: Literal["bidirectional_language"] = "bidirectional_language"
    """What the model is for."""
    data: MaskedDataSettings
    """The text it learns from and is measured on."""
    text: WordSettings = WordSettings()
    """Which words it may be asked for; all words are read by their letters."""
    model: ElmoSettings = ElmoSettings()
    """What is built."""
    training: TrainingSettings = TrainingSettings()
    """How it learns."""

    @model_validator(mode="after")
    def _check_metric(self) -> Self:
        if self.training.keep.best not in METRICS:
            raise SettingsError(
                f"training.keep.best is {self.training.keep.best!r}; validation measures {', '.join(METRICS)}: choose one",
                f"training.keep.best 为 {self.training.keep.best!r}；验证只度量 {'、'.join(METRICS)}：请选其一",
            )
        return self
