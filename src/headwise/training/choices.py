"""The `training:` section of a recipe, with a default for every setting.

The defaults are those of a small translation Transformer (Vaswani et al. 2017 where the paper gives
a value). A step is one update of the weights. An update uses `batch_tokens` · `accumulation` target
tokens, and the learning rate is per update.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from headwise.errors import SettingsError
from headwise.settings import Settings
from headwise.training import schedules

Rate = Annotated[float, Field(gt=0, le=10)]
StartRate = Annotated[float, Field(ge=0, le=10)]
Steps = Annotated[int, Field(ge=1, le=1_000_000_000)]
WarmUp = Annotated[int, Field(ge=0, le=1_000_000_000)]
Fraction = Annotated[float, Field(ge=0, lt=1)]


class CrossEntropyObjective(Settings):
    """Predict the next token (losses.py); in a parallel translator, all tokens."""

    shows_target: ClassVar[bool] = False
    """Whether the decoder is shown tokens of the target beside those that it has to predict."""
    kind: Literal["cross_entropy"] = "cross_entropy"
    label_smoothing: Fraction = 0.1
    """Share of the probability spread evenly over the vocabulary; 0: plain maximum likelihood."""


class MaskedObjective(Settings):
    """Predict some tokens of the target from the others, as many as chance says: the conditional
    masked language model of Mask-Predict (Ghazvininejad et al. 2019). For parallel translators.
    """

    shows_target: ClassVar[bool] = True
    kind: Literal["masked"] = "masked"
    label_smoothing: Fraction = 0.1
    """Share of the probability spread evenly over the vocabulary; 0: plain maximum likelihood."""


class GlancingObjective(Settings):
    """Predict the target, a part of which is shown: more of it, the worse a first pass predicts it
    (GLAT, Qian et al. 2021). For parallel translators.

    The share of the wrongly predicted tokens that is shown falls from `start` to `end`.
    """

    shows_target: ClassVar[bool] = True
    kind: Literal["glancing"] = "glancing"
    start: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Tokens shown at the first step, as a share of those that the first pass gets wrong."""
    end: Annotated[float, Field(ge=0, le=1)] = 0.3
    """That share at the last step."""
    label_smoothing: Fraction = 0.1
    """Share of the probability spread evenly over the vocabulary; 0: plain maximum likelihood."""


class NgramObjective(Settings):
    """Write the n-grams of the target, in whichever place: their expected number over all
    alignments is compared with that of the target (Shao & Feng 2022 for CTC, Ma et al. 2023 for
    graphs). For fine-tuning a parallel translator with CTC or a graph.
    """

    shows_target: ClassVar[bool] = False
    label_smoothing: ClassVar[float] = 0.0
    kind: Literal["ngrams"] = "ngrams"
    order: Annotated[int, Field(ge=1, le=4)] = 2
    """Tokens of an n-gram; with CTC 1 or 2."""


class AdamWOptimizer(Settings):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2019).

    The table in optimizers.py says which weights decay.
    """

    kind: Literal["adamw"] = "adamw"
    betas: tuple[Fraction, Fraction] = (0.9, 0.98)
    """Decay rates of the running means of the gradient and of its square; 0.98 follows changes
    faster than the usual 0.999."""
    eps: Annotated[float, Field(gt=0, le=1)] = 1e-9
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Each step shrinks weight matrices by this times the learning rate; norms, biases and
    embeddings do not decay."""


class InverseSqrtSchedule(Settings):
    """Warm-up, then peak · sqrt(warmup / step).

    It does not depend on the number of steps, so that a run can always be continued.
    """

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    peak: Rate = 1e-3
    """The highest learning rate, reached at the end of the warm-up."""
    warmup: Steps = 4000
    """Steps over which the rate rises linearly."""
    initial: StartRate = 0.0
    """The rate at the start of the warm-up."""


class NoamSchedule(Settings):
    """The curve of "Attention is all you need": its peak is factor / sqrt(dim · warmup)."""

    kind: Literal["noam"] = "noam"
    dim: PositiveInt
    """The model's width in the formula (model.dim of the recipe)."""
    factor: Annotated[float, Field(gt=0, le=100)] = 1.0
    warmup: Steps = 4000


class CosineSchedule(Settings):
    """Warm-up, then half a cosine down to `final` at the last step."""

    kind: Literal["cosine"] = "cosine"
    peak: Rate = 1e-3
    warmup: WarmUp = 4000
    initial: StartRate = 0.0
    final: StartRate = 0.0
    """The rate of the last step."""


class LinearSchedule(Settings):
    """Warm-up, then a straight line down to `final` at the last step."""

    kind: Literal["linear"] = "linear"
    peak: Rate = 1e-3
    warmup: WarmUp = 4000
    initial: StartRate = 0.0
    final: StartRate = 0.0
    """The rate of the last step."""


class ConstantSchedule(Settings):
    """Warm-up (none by default), then the same rate for ever."""

    kind: Literal["constant"] = "constant"
    peak: Rate = 1e-3
    warmup: WarmUp = 0
    initial: StartRate = 0.0


ScheduleSettings = Annotated[
    InverseSqrtSchedule | NoamSchedule | CosineSchedule | LinearSchedule | ConstantSchedule,
    Field(discriminator="kind"),
]


def learning_rate(schedule: ScheduleSettings, step: int, *, steps: int) -> float:
    """The rate of update number `step` (from 1) in a training of `steps` updates."""
    match schedule:
        case InverseSqrtSchedule(peak=peak, warmup=warmup, initial=initial):
            return schedules.inverse_sqrt(step, peak=peak, warmup=warmup, initial=initial)
        case NoamSchedule(factor=factor, dim=dim, warmup=warmup):
            return schedules.noam(step, factor=factor, dim=dim, warmup=warmup)
        case CosineSchedule(peak=peak, warmup=warmup, initial=initial, final=final):
            return schedules.cosine(
                step, peak=peak, warmup=warmup, steps=steps, initial=initial, final=final
            )
        case LinearSchedule(peak=peak, warmup=warmup, initial=initial, final=final):
            return schedules.linear(
                step, peak=peak, warmup=warmup, steps=steps, initial=initial, final=final
            )
        case ConstantSchedule(peak=peak, warmup=warmup, initial=initial):
            return schedules.warm_up(step, peak=peak, warmup=warmup, initial=initial)


class ReplicatedLayout(Settings):
    """Every process holds the whole model and learns from its share of the rows (data parallel)."""

    kind: Literal["replicated"] = "replicated"


class ShardedLayout(Settings):
    """Every process holds a part of each weight, its gradient and its optimiser state.

    See distributed_model.py.
    """

    kind: Literal["sharded"] = "sharded"


LayoutSettings = Annotated[ReplicatedLayout | ShardedLayout, Field(discriminator="kind")]


class KeepSettings(Settings):
    """Which weights stay on disk."""

    best: str = "loss"
    """The validation metric that says which weights are best and when patience runs out, e.g.
    `loss` or `bleu`. The task declares which metrics there are, and whether lower or higher is
    better."""
    last: Annotated[int, Field(ge=2, le=100)] = 2
    """Checkpoints kept; at least two, because the newest is the one a crash may damage."""

    def check_metric(self, measured: Sequence[str]) -> None:
        """Raise unless `best` is one of the metrics that validation measures."""
        if self.best not in measured:
            raise SettingsError(
                f"training.keep.best is {self.best!r}; validation measures {', '.join(measured)}: "
                "choose one",
                f"training.keep.best 为 {self.best!r}；验证只度量 {'、'.join(measured)}：请选其一",
            )


class AverageSettings(Settings):
    """The mean of the last n snapshots of the weights."""

    last: Annotated[int, Field(ge=2, le=100)] = 5
    """Snapshots averaged."""
    every: Steps = 500
    """Steps between snapshots."""


class TrainingSettings(Settings):
    """How a model learns."""

    objective: CrossEntropyObjective = CrossEntropyObjective()
    batch_tokens: Annotated[int, Field(ge=1, le=100_000_000)] = 8192
    """Target tokens of one batch, padding included: rows times row length."""
    accumulation: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Batches whose gradients are summed before one update: a large batch in the memory of a small
    one. Several processes share these batches."""
    steps: Steps = 100_000
    """Number of updates."""
    optimizer: AdamWOptimizer = AdamWOptimizer()
    schedule: ScheduleSettings = InverseSqrtSchedule()
    freeze: tuple[str, ...] = ()
    """Weights that are not trained: patterns of names (`encoder.embedding.*`), ranges of blocks
    (`layers 0-1`), or everything except a pattern (`not draft_heads.*`)."""
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The learning rate of a layer is this times that of the layer above it (embeddings lowest); 1:
    the same rate for all."""
    clip: Annotated[float, Field(gt=0)] | None = 1.0
    """Largest norm of the gradient of the mean loss; larger ones are scaled down. null: no limit.
    """
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """Number format of matrix products; weights, softmax and norms stay fp32. auto: bf16 where the
    hardware is fast at it."""
    compile: Literal["auto", "on", "off"] = "auto"
    """Compile the loss with torch.compile. auto: on a GPU, if a compiler is installed and the run
    is long enough to gain from it."""
    cuda_graphs: Literal["auto", "on", "off"] = "auto"
    """Record an update once and replay it as one CUDA graph. auto: on a GPU, if it can be recorded.
    """
    recompute: Literal["nothing", "blocks"] = "nothing"
    """blocks: gradient checkpointing. Keep only the inputs of each block and recompute the rest in
    the backward pass: the same numbers with less memory."""
    parallel: LayoutSettings = ReplicatedLayout()
    """How several processes (torchrun) hold the weights; no effect on a single process."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1
    """Seed of dropout, data order and initial weights."""
    deterministic: bool = False
    """Use only deterministic kernels: two runs on one GPU give the same bits, at lower speed."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: a GPU if there is one."""
    log_every: Steps = 50
    """Steps between lines of log.jsonl; on a GPU the loss is read back only then."""
    checkpoint_every: Steps = 1000
    """Steps between checkpoints: a crash loses at most this much work."""
    validate_every: Steps | None = 1000
    """Steps between validations; null: only at the end."""
    keep: KeepSettings = KeepSettings()
    average: AverageSettings | None = None
    """Finish with the mean of the last snapshots of the weights."""
    ema: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Decay of an exponential moving average of the weights, which is used for validation and at
    the end."""
    patience: PositiveInt | None = None
    """Stop after this many validations in a row without a better `keep.best`; null: never."""
    max_skipped: PositiveInt = 10
    """Updates whose loss or gradient is not finite are skipped; this many in a row end the
    training."""
    time_limit: Annotated[float, Field(gt=0)] | None = None
    """Stop after this many seconds of training, earlier sessions of the same run included; null:
    never."""
    tensorboard: bool = False
    """Also write TensorBoard events to the run directory (needs the extra `tensorboard`)."""

    @model_validator(mode="after")
    def _one_kind_of_average(self) -> Self:
        if self.average is not None and self.ema is not None:
            raise SettingsError(
                "`average` and `ema` both say which weights to finish with; set one of them to "
                "null",
                "`average` 与 `ema` 都规定了最终使用的权重；请将其中一个设为 null",
            )
        return self
