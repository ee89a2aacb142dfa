"""Refuses scheduled sampling for models that cannot learn so, and says what works."""

from headwise.errors import SettingsError
from headwise.models.choices import EncoderDecoderSettings, ModelSettings
from headwise.models.parallel.choices import ParallelSettings
from headwise.models.recurrent.choices import RecurrentTranslatorSettings
from headwise.training.choices import LayoutSettings, ShardedLayout
from headwise.training.sampling_choices import MixingInSteps, ScheduledSamplingObjective


def check_scheduled_sampling(
    objective: ScheduledSamplingObjective, model: ModelSettings, layout: LayoutSettings
) -> None:
    """Refuse a model whose inputs cannot be replaced by its own predictions in this way."""
    name = f"training.objective.kind={objective.kind}"
    if isinstance(layout, ShardedLayout):
        raise SettingsError(
            f"{name} runs the decoder several times for one pass of the encoder, but with "
            f"training.parallel.kind={layout.kind} weights are gathered for one pass of the whole "
            "model; set training.parallel.kind=replicated",
            f"{name} 编码一次而解码多遍，而 training.parallel.kind={layout.kind} "
            "只为整个模型的一遍计算收集权重；请设 training.parallel.kind=replicated",
        )
    if isinstance(model, ParallelSettings):
        raise SettingsError(
            f"{name} lets a decoder read its own previous tokens, but model.kind={model.kind} "
            "predicts all tokens at once; set model.kind=encoder_decoder or recurrent, or "
            "training.objective.kind=cross_entropy",
            f"{name} 让解码器读取自己先前写出的词元，而 model.kind={model.kind} 同时预测所有词元；"
            "请设 model.kind=encoder_decoder 或 recurrent，或设 "
            "training.objective.kind=cross_entropy",
        )
    in_steps = isinstance(objective.mixing, MixingInSteps)
    if in_steps and not isinstance(model, RecurrentTranslatorSettings):
        raise SettingsError(
            f"training.objective.mixing.kind={objective.mixing.kind} trains step by step, which "
            f"only model.kind=recurrent does; model.kind={model.kind} computes all positions at "
            "once: set training.objective.mixing.kind=passes",
            f"training.objective.mixing.kind={objective.mixing.kind} 逐步训练，只有 "
            f"model.kind=recurrent 如此；model.kind={model.kind} 同时计算所有位置：请设 "
            "training.objective.mixing.kind=passes",
        )
    if isinstance(model, EncoderDecoderSettings) and (
        model.draft_heads.count or model.draft_decoder.layers
    ):
        raise SettingsError(
            f"{name} changes what the decoder reads, but draft heads and draft decoders learn "
            "from the right tokens; train the translator first with model.draft_heads.count=0 and "
            "model.draft_decoder.layers=0, then add them with model.start_from and "
            "training.objective.kind=cross_entropy",
            f"{name} 会改变解码器读到的内容，而草稿头与草稿解码器从正确的词元学习；请先以 "
            "model.draft_heads.count=0 与 model.draft_decoder.layers=0 训练翻译模型，再用 "
            "model.start_from 与 training.objective.kind=cross_entropy 加上它们",
        )
