"""Refuses recipes whose objective learns from samples but whose model or training cannot.

Samples are drawn token by token, so the model must write from left to right. Their number and
length are known only when they are drawn, so an update has no fixed shapes: it is not compiled, not
recorded as a CUDA graph, and every process holds the whole model.
Tested through recipes.
"""

from headwise.errors import SettingsError
from headwise.models.choices import EncoderDecoderSettings, ModelSettings
from headwise.models.parallel.choices import ParallelSettings
from headwise.training.choices import TrainingSettings
from headwise.training.sequence.choices import ReinforceObjective, SequenceObjective


def check_sequence_objective(
    objective: object, model: ModelSettings, training: TrainingSettings
) -> None:
    """Refuse what does not fit an objective with samples; any other objective passes."""
    _check_baseline(objective, model)
    if not isinstance(objective, SequenceObjective):
        return
    kind = getattr(objective, "kind", "")
    if isinstance(model, ParallelSettings):
        raise SettingsError(
            f"training.objective.kind={kind} draws samples from left to right, but model.kind="
            f"{model.kind} writes all tokens at once; set model.kind=encoder_decoder, or another "
            "training.objective.kind",
            f"training.objective.kind={kind} 从左到右采样，而 model.kind={model.kind} "
            "一次写出所有词元；请设 model.kind=encoder_decoder，或换用其他 training.objective.kind",
        )
    for key, given, needed in (
        ("compile", training.compile, "off"),
        ("cuda_graphs", training.cuda_graphs, "off"),
        ("parallel.kind", training.parallel.kind, "replicated"),
    ):
        if given not in (needed, "auto"):
            raise SettingsError(
                f"training.{key}={given} was given, but training.objective.kind={kind} draws "
                f"samples, whose lengths differ in every update; set training.{key}={needed}",
                f"给出了 training.{key}={given}，但 training.objective.kind={kind} 要采样，"
                f"每次更新的样本长度不同；请设 training.{key}={needed}",
            )


def _check_baseline(objective: object, model: ModelSettings) -> None:
    """A linear baseline and its weights come together, and a mean of others needs others."""
    baseline = objective.baseline if isinstance(objective, ReinforceObjective) else None
    has_weights = isinstance(model, EncoderDecoderSettings) and model.reward_baseline
    if baseline == "linear" and not has_weights:
        raise SettingsError(
            "training.objective.baseline=linear is learned by weights that the model does not "
            "have; set model.reward_baseline=true (with model.kind=encoder_decoder), or "
            "training.objective.baseline=other_samples",
            "training.objective.baseline=linear 需要模型中没有的权重；请设 "
            "model.reward_baseline=true（用于 model.kind=encoder_decoder），或 "
            "training.objective.baseline=other_samples",
        )
    is_alone = isinstance(objective, ReinforceObjective) and objective.samples.count == 1
    if is_alone and baseline == "other_samples":
        raise SettingsError(
            "training.objective.baseline=other_samples compares the samples of a sentence, but "
            "training.objective.samples.count is 1; set it to 2 or more, or "
            "training.objective.baseline=greedy_output",
            "training.objective.baseline=other_samples 比较一句的各个样本，而 "
            "training.objective.samples.count 为 1；请设为 2 或更多，或设 "
            "training.objective.baseline=greedy_output",
        )
