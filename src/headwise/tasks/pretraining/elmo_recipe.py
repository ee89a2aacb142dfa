"""The recipe of ELMo's pre-training: unlabelled text, a forward and a backward language model."""

from typing import ClassVar, Literal

from headwise.models.sentence_encoder import ElmoSettings
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.declared_results import Result, mean_loss, perplexity
from headwise.tasks.pretraining.forms import ELMO_FORM
from headwise.tasks.pretraining.masked_recipe import MaskedDataSettings
from headwise.text.choices import WordSettings
from headwise.training.choices import TrainingSettings


class ElmoRecipe(AnyRecipe):
    """Two language models over words, for others to start from."""

    bundle_form: ClassVar = ELMO_FORM
    metrics: ClassVar = {
        "loss": mean_loss(("loss of both directions", "损失（两个方向）")),
        "perplexity": perplexity(("perplexity of both directions", "困惑度（两个方向）")),
        "forward_perplexity": perplexity(("perplexity read forward", "困惑度（正向）")),
        "backward_perplexity": perplexity(("perplexity read backward", "困惑度（反向）")),
    }
    results: ClassVar = {
        "lines": Result(("lines of text", "文本行数")),
        "tokens": Result(("tokens of text", "文本词元")),
        "words": Result(("different words", "词的种数")),
        "vocabulary": Result(("vocabulary", "词表大小")),
    }

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
