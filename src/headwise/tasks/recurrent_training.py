"""What training can be where a model goes from word to word: its shapes follow the sentences, and
its layers run once for each word.

There is nothing to compile, nothing to record and no block to compute again; `auto` can only mean
off.
"""

from headwise.errors import SettingsError
from headwise.training.choices import TrainingSettings


def check_word_by_word(training: TrainingSettings) -> None:
    """Refuse what a recurrent model has no form for."""
    for key, given, needed in (
        ("compile", training.compile, "off"),
        ("cuda_graphs", training.cuda_graphs, "off"),
        ("recompute", training.recompute, "nothing"),
        ("parallel.kind", training.parallel.kind, "replicated"),
    ):
        if given not in (needed, "auto"):
            raise SettingsError(
                f"training.{key}={given} was given, but model.kind=recurrent goes from word to "
                f"word in steps that follow the sentences; set training.{key}={needed}",
                f"给出了 training.{key}={given}，但 model.kind=recurrent 逐词进行，"
                f"步数随句子而变；请设 training.{key}={needed}",
            )


def train_word_by_word(training: TrainingSettings) -> TrainingSettings:
    """With what `auto` can only mean here."""
    off = {name: "off" for name in ("compile", "cuda_graphs") if getattr(training, name) == "auto"}
    return training.model_copy(update=off)
