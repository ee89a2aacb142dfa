"""The recipe of ELMo's pre-training: unlabelled text, a forward and a backward language model."""

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from headwise.models.sentence_encoder import ElmoSettings
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.bundle_form import BundleForm
from headwise.tasks.pretraining.masked_recipe import MaskedDataSettings
from headwise.text.choices import WordSettings
from headwise.training.choices import TrainingSettings

METRICS = ("loss", "perplexity")
"""What a validation measures: the mean over both directions."""


class ElmoRecipe(AnyRecipe):
    """Two language models over words, for others to start from."""

    bundle_form: ClassVar = BundleForm(
        ("an ELMo model", "ELMo 模型"), "english-elmo", starts_others=True
    )

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
        self.training.keep.check_metric(METRICS)
        return self
