"""Checks the training settings of models whose steps cannot be compiled or recorded as a CUDA
graph, because their shapes follow the lengths of the sentences.

A recurrent model runs its layers once for each word. So `compile`, `cuda_graphs`, `recompute` and
sharding must be off, and `auto` means off. The rule is the same for translators, language models,
taggers, classifiers and ELMo.

A parallel translator whose loss runs over alignments, chains or edits lays out one sentence per
row. Its update cannot be recorded; it can be compiled in part.

A bundle trained by an older version with another setting is still loaded: the rules are applied
before a training or a plan.
"""

from headwise.errors import SettingsError
from headwise.models.parallel.choices import ParallelSettings
from headwise.training.choices import TrainingSettings


def check_word_by_word(training: TrainingSettings, kind: str = "recurrent") -> None:
    """Refuse what a recurrent model has no form for."""
    for key, given, needed in (
        ("compile", training.compile, "off"),
        ("cuda_graphs", training.cuda_graphs, "off"),
        ("recompute", training.recompute, "nothing"),
        ("parallel.kind", training.parallel.kind, "replicated"),
    ):
        if given not in (needed, "auto"):
            raise SettingsError(
                f"training.{key}={given} was given, but model.kind={kind} is a recurrent "
                f"model, whose number of steps depends on the sentence length; set "
                f"training.{key}={needed}",
                f"给出了 training.{key}={given}，但 model.kind={kind} 是循环模型，"
                f"步数取决于句长；请设 training.{key}={needed}",
            )


def train_word_by_word(training: TrainingSettings) -> TrainingSettings:
    """With what `auto` can only mean here."""
    off = {name: "off" for name in ("compile", "cuda_graphs") if getattr(training, name) == "auto"}
    return training.model_copy(update=off)


def check_not_recorded(training: TrainingSettings, model: ParallelSettings) -> None:
    """Refuse to record the update of a loss that takes one sentence per row."""
    if training.cuda_graphs == "on":
        kinds = (
            f"model.length.kind={model.length.kind} and model.structure.kind={model.structure.kind}"
        )
        raise SettingsError(
            f"training.cuda_graphs=on was given, but the shapes of the loss of {kinds} follow the "
            "lengths of the sentences; set training.cuda_graphs=off",
            f"给出了 training.cuda_graphs=on，但 {kinds} 的损失的形状随句长而变；请设 "
            "training.cuda_graphs=off",
        )


def record_nothing(training: TrainingSettings) -> TrainingSettings:
    """With what `auto` can only mean for such a loss."""
    off = "off" if training.cuda_graphs == "auto" else training.cuda_graphs
    return training.model_copy(update={"cuda_graphs": off})
