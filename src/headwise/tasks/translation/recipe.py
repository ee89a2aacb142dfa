"""The recipe of a translator: its data, tokenizers, model, training, decoding and evaluation."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationError, model_validator

from headwise.blocks.choices import check_recomputing
from headwise.data.pairs.choices import DataSettings
from headwise.data.pairs.segmentation.choices import Segmentation, check_segmentation
from headwise.data.token_edits import width_with_begins
from headwise.decoding.choices import (
    DecodingSettings,
    DraftedSettings,
    check_output_form,
    default_decoding,
)
from headwise.decoding.search.beam import BeamSettings
from headwise.errors import SettingsError
from headwise.models.choices import EncoderDecoderSettings, ModelSettings
from headwise.models.limits import check_buckets, check_rows, source_limits, target_limits
from headwise.models.parallel.choices import (
    CrfStructure,
    EditedLength,
    FertilityLength,
    ParallelSettings,
    output_form,
)
from headwise.models.recurrent.choices import RecurrentTranslatorSettings
from headwise.models.transformer_settings import TransformerSettings
from headwise.settings import Settings
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.recurrent_training import (
    check_not_recorded,
    check_word_by_word,
    record_nothing,
    train_word_by_word,
)
from headwise.tasks.translation.declared_results import METRICS, RESULTS
from headwise.tasks.translation.form import FORM
from headwise.tasks.translation.sampling_check import check_scheduled_sampling
from headwise.tasks.translation.sequence_limits import check_sequence_objective
from headwise.text.choices import SentencePieceSettings, TextSettings
from headwise.training.choices import (
    CrossEntropyObjective,
    GlancingObjective,
    MaskedObjective,
    NgramObjective,
    TrainingSettings,
)
from headwise.training.parallel.ctc_ngrams import ORDERS
from headwise.training.sampling_choices import ScheduledSamplingObjective
from headwise.training.sequence.choices import (
    MinimumRiskObjective,
    ReinforceObjective,
    SequenceObjective,
)

PARALLEL = str(ParallelSettings.model_fields["kind"].default)


class EvaluationSettings(Settings):
    """How the model is measured, while it learns and at the end."""

    validation_sentences: int = Field(default=200, ge=0, le=1_000_000)
    """At each validation also translate the first so many sentences greedily, for BLEU and chrF; 0
    measures the loss alone."""
    pretokenized: bool = False
    """The text is tokenised already: BLEU counts its tokens as they stand."""
    lowercase: bool = False
    """Ignore upper and lower case."""


TranslationObjective = Annotated[
    CrossEntropyObjective
    | MaskedObjective
    | GlancingObjective
    | NgramObjective
    | ScheduledSamplingObjective
    | MinimumRiskObjective
    | ReinforceObjective,
    Field(discriminator="kind"),
]


class TranslationTraining(TrainingSettings):
    """How a translator learns."""

    objective: TranslationObjective = CrossEntropyObjective()  # type: ignore[assignment]
    """What it is taught to predict."""
    segmentation: Segmentation | None = None
    """Cut the training sentences into other pieces in each epoch; null: always the best pieces."""


class TranslationRecipe(AnyRecipe):
    """A translator, from its text to its answers."""

    follows: ClassVar = "decoding"
    """The section whose kind, if it has none, follows from that of the model."""
    bundle_form: ClassVar = FORM
    metrics: ClassVar = METRICS
    results: ClassVar = RESULTS

    task: Literal["translation"] = "translation"
    """What the model is for."""
    data: DataSettings
    """The parallel text it learns from and is measured on."""
    text: TextSettings = SentencePieceSettings()
    """How text becomes tokens."""
    model: ModelSettings = EncoderDecoderSettings()
    """What is built."""
    training: TranslationTraining = TranslationTraining()
    """How it learns."""
    evaluation: EvaluationSettings = EvaluationSettings()
    """How it is measured."""
    decoding: DecodingSettings = BeamSettings()
    """How it answers."""

    @model_validator(mode="before")
    @classmethod
    def _choose_decoding(cls, data: Any) -> Any:
        """A parallel model cannot be searched token by token: its own decoding is the default."""
        if not isinstance(data, Mapping):
            return data
        model, decoding = data.get("model"), data.get("decoding", {})
        names_a_kind = not isinstance(decoding, Mapping) or "kind" in decoding
        if names_a_kind or not isinstance(model, Mapping) or model.get("kind") != PARALLEL:
            return data
        try:
            form = output_form(ParallelSettings.model_validate(model))
        except ValidationError:
            return data  # its errors are listed when the field itself is checked
        kind = getattr(default_decoding(form), "kind", None)
        return {**data, "decoding": {"kind": kind, **decoding}}

    @model_validator(mode="after")
    def _check_sharing(self) -> Self:
        if self.model.embedding.tied == "all" and not self.text.shared:
            raise SettingsError(
                "model.embedding.tied=all needs one vocabulary for both languages; "
                "set text.shared=true, or model.embedding.tied=output",
                "model.embedding.tied=all 要求两种语言共用词表；请设 text.shared=true，或 "
                "model.embedding.tied=output",
            )
        if self.data.directions and not self.text.shared:
            raise SettingsError(
                "data.directions needs one vocabulary for all languages; set text.shared=true",
                "data.directions 要求所有语言共用词表；请设 text.shared=true",
            )
        self._check_kind()
        self._check_drafting()
        if self.training.segmentation is not None:
            check_segmentation(self.training.segmentation, self.text)
            check_one_segmentation(self.model)
        # Source rows are in the proportion of the languages, which only the text knows.
        source = (
            "data.row_tokens, and source rows may be longer",
            "data.row_tokens，源语言行可能更长",
        )
        check_rows(
            source_limits(self.model),
            self.data.row_tokens,
            rows=source,
            enough=2 * self.data.row_tokens,
        )
        # A decoder that edits reads the beginning of each sentence as well.
        row, edits = self.data.row_tokens, output_form(self.model) == "revisions"
        check_rows(
            target_limits(self.model),
            width_with_begins(row) if edits else row,
            rows=("data.row_tokens", "data.row_tokens"),
        )
        if isinstance(self.model, TransformerSettings):
            check_buckets(self.model, self.data.row_tokens)
            check_recomputing(self.model.norm, self.training.recompute)
        best = self.training.keep.best
        if best in ("bleu", "chrf") and self.evaluation.validation_sentences == 0:
            raise SettingsError(
                f"training.keep.best={best} needs translations to score; set "
                "evaluation.validation_sentences, e.g. 500",
                f"training.keep.best={best} 需要译文才能计分；请设 "
                "evaluation.validation_sentences，例如 500",
            )
        return self

    def _check_kind(self) -> None:
        if isinstance(self.model, RecurrentTranslatorSettings):
            check_word_by_word(self.training)
        if isinstance(self.model, ParallelSettings) and not self.model.has_static_shapes:
            check_not_recorded(self.training, self.model)
        check_output_form(self.decoding, output_form(self.model))
        objective = self.training.objective
        if isinstance(objective, ScheduledSamplingObjective):
            check_scheduled_sampling(objective, self.model, self.training.parallel)
        check_objective(objective, self.model)
        check_sequence_objective(objective, self.model, self.training)

    def _check_drafting(self) -> None:
        if not isinstance(self.decoding, DraftedSettings):
            return
        if not isinstance(self.model, EncoderDecoderSettings):
            raise SettingsError(
                f"decoding.kind=drafted verifies several tokens in one pass, and model.kind="
                f"{self.model.kind} reads them one by one; set decoding.kind=greedy",
                f"decoding.kind=drafted 一次验证多个词元，而 model.kind={self.model.kind} "
                "逐个读取；请设 decoding.kind=greedy",
            )
        count = self.model.draft_heads.count
        if self.decoding.num_heads > count:
            raise SettingsError(
                f"decoding.block is {self.decoding.num_heads} with decoding.drafter.kind=heads, "
                f"but model.draft_heads.count is {count}; set them to the same number, or use "
                "another decoding.drafter.kind",
                f"decoding.drafter.kind=heads 时 decoding.block 为 {self.decoding.num_heads}，而 "
                f"model.draft_heads.count 为 {count}；请设为相同的数，或换用其他 "
                "decoding.drafter.kind",
            )
        drafting = self.model.draft_decoder
        longest = drafting.block if drafting.layers else 0
        if self.decoding.num_guessed > longest:
            raise SettingsError(
                f"decoding.block is {self.decoding.num_guessed} with decoding.drafter.kind="
                f"parallel, but model.draft_decoder guesses {longest} tokens at once; set "
                "model.draft_decoder.layers=1 and model.draft_decoder.block to the same number, "
                "or use another decoding.drafter.kind",
                f"decoding.drafter.kind=parallel 时 decoding.block 为 {self.decoding.num_guessed}，"
                f"而 model.draft_decoder 一次猜 {longest} 个词元；请设 "
                "model.draft_decoder.layers=1 并使 model.draft_decoder.block 与之相同，或换用其他 "
                "decoding.drafter.kind",
            )

    @property
    def training_as_run(self) -> TrainingSettings:
        """With what `auto` can only mean for this model."""
        if isinstance(self.model, ParallelSettings) and not self.model.has_static_shapes:
            return record_nothing(self.training)
        if isinstance(self.training.objective, SequenceObjective):
            return train_word_by_word(self.training)
        if isinstance(self.model, TransformerSettings):
            return self.training
        return train_word_by_word(self.training)


def check_objective(objective: TranslationObjective, model: ModelSettings) -> None:
    """Refuse an objective that the model cannot learn from."""
    if objective.shows_target and not isinstance(model, ParallelSettings):
        raise SettingsError(
            f"training.objective.kind={objective.kind} shows a part of the target, but "
            f"model.kind={model.kind} predicts each token from the ones before it; set "
            f"model.kind={PARALLEL}, or training.objective.kind=cross_entropy",
            f"training.objective.kind={objective.kind} 会给出目标句的一部分，而 "
            f"model.kind={model.kind} 由前面的词元预测下一个；请设 "
            f"model.kind={PARALLEL}，或 training.objective.kind=cross_entropy",
        )
    if isinstance(objective, NgramObjective):
        check_ngrams(objective, model)
    if not isinstance(model, ParallelSettings):
        return
    check_whole_targets(objective, model)
    if isinstance(model.length, EditedLength):
        check_edits_objective(objective)
    if model.structure.sums_alignments:
        check_alignment_objective(objective, model.structure.kind)


def check_one_segmentation(model: ModelSettings) -> None:
    """Fertilities are read off links between the pieces of one segmentation."""
    if isinstance(model, ParallelSettings) and isinstance(model.length, FertilityLength):
        raise SettingsError(
            "training.segmentation cuts words into other pieces each time, but "
            "model.length.kind=fertility learns from a word alignment of the best pieces; leave "
            "training.segmentation out, or set model.length.kind=classifier",
            "training.segmentation 每次把词切成不同的词元，而 model.length.kind=fertility "
            "从最佳切分的词对齐中学习；请去掉 training.segmentation，或设 "
            "model.length.kind=classifier",
        )


def check_ngrams(objective: NgramObjective, model: ModelSettings) -> None:
    """n-grams are counted over alignments, which only some models have."""
    structure = model.structure.kind if isinstance(model, ParallelSettings) else None
    if structure not in ("ctc", "graph"):
        raise SettingsError(
            "training.objective.kind=ngrams counts n-grams over all alignments or paths, which "
            f"only model.kind={PARALLEL} with model.structure.kind=ctc or graph has; set these, "
            "or training.objective.kind=cross_entropy",
            "training.objective.kind=ngrams 在所有对齐或路径上计数 n 元组，只有 "
            f"model.kind={PARALLEL} 加 model.structure.kind=ctc 或 graph 才有对齐；请如此设置，"
            "或设 training.objective.kind=cross_entropy",
        )
    if structure == "ctc" and objective.order not in ORDERS:
        raise SettingsError(
            f"training.objective.order={objective.order}, but with model.structure.kind=ctc words "
            "and pairs of words are counted; set training.objective.order to 1 or 2",
            f"training.objective.order={objective.order}，而 model.structure.kind=ctc "
            "时只计数词与词对；请将 training.objective.order 设为 1 或 2",
        )


def check_edits_objective(objective: TranslationObjective) -> None:
    """A model that edits has an objective of its own, which shows a part of each target."""
    if objective.shows_target:
        raise SettingsError(
            f"training.objective.kind={objective.kind} chooses what is shown of the target, but "
            "model.length.kind=edited deletes some of its words itself; set "
            "training.objective.kind=cross_entropy",
            f"training.objective.kind={objective.kind} 选择给出目标句的哪一部分，而 "
            "model.length.kind=edited 自行删去部分词；请设 training.objective.kind=cross_entropy",
        )


def check_alignment_objective(objective: TranslationObjective, structure: str) -> None:
    """A sum over alignments knows no position of a token."""
    if isinstance(objective, MaskedObjective):
        raise SettingsError(
            "training.objective.kind=masked hides tokens at known positions, but with "
            f"model.structure.kind={structure} the position of a token is not known; use "
            "training.objective.kind=glancing or cross_entropy",
            "training.objective.kind=masked 遮住位置已知的词元，而 "
            f"model.structure.kind={structure} 时词元的位置未知；请用 "
            "training.objective.kind=glancing 或 cross_entropy",
        )
    if objective.label_smoothing:
        raise SettingsError(
            f"training.objective.label_smoothing={objective.label_smoothing:g} spreads the "
            f"probability of one position, but model.structure.kind={structure} sums over all "
            "positions that may write a token; set training.objective.label_smoothing=0",
            f"training.objective.label_smoothing={objective.label_smoothing:g} 平滑单个位置的概率，"
            f"而 model.structure.kind={structure} 对所有可能写出该词元的位置求和；请设 "
            "training.objective.label_smoothing=0",
        )


def check_whole_targets(objective: TranslationObjective, model: ParallelSettings) -> None:
    """Refuse to show tokens of a target that is scored as a whole, or that nobody refines."""
    if objective.shows_target and isinstance(model.structure, CrfStructure):
        raise SettingsError(
            f"training.objective.kind={objective.kind} shows tokens of the target, but "
            "model.structure.kind=crf learns the score of whole targets; set "
            "training.objective.kind=cross_entropy",
            f"training.objective.kind={objective.kind} 会给出目标句的词元，而 "
            "model.structure.kind=crf 学习整个目标句的得分；请设 "
            "training.objective.kind=cross_entropy",
        )
    if isinstance(objective, MaskedObjective) and isinstance(model.length, FertilityLength):
        raise SettingsError(
            "training.objective.kind=masked teaches to refine a translation of a given length, but "
            "model.length.kind=fertility translates in one pass; set "
            "training.objective.kind=cross_entropy or glancing, or model.length.kind=classifier",
            "training.objective.kind=masked 学习改进给定长度的译文，而 "
            "model.length.kind=fertility 只译一遍；请设 training.objective.kind=cross_entropy 或 "
            "glancing，或设 model.length.kind=classifier",
        )
