"""Settings of a parallel (non-autoregressive) translator, and the parts that can be combined.

    model: {kind: parallel, length: {kind: classifier}, structure: {kind: independent}}

`length` says how many positions the decoder has, `structure` how the outputs of these positions
depend on each other. `input` says what the decoder reads at a position whose token is not known.
Each kind of length names the structures that it can be combined with.

Gu et al. 2018, *Non-Autoregressive Neural Machine Translation*.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from headwise.attention.shapes import check_heads
from headwise.errors import SettingsError
from headwise.models.transformer_settings import TransformerSettings
from headwise.settings import Settings


class LengthKind(Settings):
    """What all kinds of length have in common."""

    structures: ClassVar[tuple[str, ...]] = ()
    """The kinds of structure that can be combined with it."""
    from_source: ClassVar[bool] = False
    """Whether the positions of the decoder follow from the source alone, also in training."""
    output_form: ClassVar[str | None] = None
    """What a model with it gives to a search; None: what its structure says."""
    kind: str


class ClassifierLength(LengthKind):
    """The encoder predicts the length of the target: one class for each length.

    The states of the source are averaged, and a linear layer gives a score to each length. In
    training the length is that of the reference.
    """

    structures: ClassVar[tuple[str, ...]] = ("independent", "crf")
    kind: Literal["classifier"] = "classifier"
    classes: int = Field(default=256, ge=2, le=4096)
    """Lengths that can be predicted: 1 to this number, the end of the sentence included; with
    `relative`, differences from the length of the source."""
    relative: bool = True
    """Predict the difference from the source's length instead of the length itself."""
    weight: float = Field(default=0.1, ge=0, le=10)
    """Weight of its loss, the mean over sentences, beside the mean loss of the tokens."""


class ManyBeginLength(LengthKind):
    """The decoder reads a fixed number of positions; what follows the first `</s>` is cut off."""

    structures: ClassVar[tuple[str, ...]] = ("independent",)
    output_form: ClassVar[str | None] = "cut_positions"
    kind: Literal["many_begin"] = "many_begin"
    positions: int = Field(default=64, ge=2, le=4096)
    """Positions of every target, at least the longest target with its end."""


class FertilityLength(LengthKind):
    """The decoder reads each source token as often as its fertility says: the number of target
    tokens that translate it (Gu et al. 2018).

    The fertilities of the training pairs come from a word aligner that is learned from the training
    data beforehand.
    """

    structures: ClassVar[tuple[str, ...]] = ("independent", "crf")
    output_form: ClassVar[str | None] = "copies"
    kind: Literal["fertility"] = "fertility"
    most: int = Field(default=49, ge=1, le=1024)
    """The largest fertility: a target is at most so many times as long as its source."""
    weight: float = Field(default=1.0, ge=0, le=10)
    """Weight of its loss, summed over source tokens, beside the summed loss of the target
    tokens."""


class UpsampledLength(LengthKind):
    """The decoder has `factor` positions for each source token; the structure decides which of
    them write a token."""

    structures: ClassVar[tuple[str, ...]] = ("ctc", "graph")
    kind: Literal["upsampled"] = "upsampled"
    factor: int = Field(default=2, ge=1, le=32)
    """Positions for each source token, the end of the sentence included; 2 or 3 suit CTC, 4 to 8 a
    graph."""


class EditedLength(LengthKind):
    """Words are deleted and inserted, so the length changes from round to round (Levenshtein
    Transformer, Gu, Wang & Zhao 2019)."""

    structures: ClassVar[tuple[str, ...]] = ("independent",)
    output_form: ClassVar[str | None] = "revisions"
    kind: Literal["edited"] = "edited"
    insertions: int = Field(default=255, ge=1, le=4095)
    """Most words that one round inserts between two neighbours."""


LengthSettings = Annotated[
    ClassifierLength | ManyBeginLength | FertilityLength | UpsampledLength | EditedLength,
    Field(discriminator="kind"),
]


class StructureKind(Settings):
    """What all structures have in common."""

    output_form: ClassVar[str] = "positions"
    """What a model with it gives to a search (decoding/choices.py)."""
    sums_alignments: ClassVar[bool] = False
    """Whether the loss sums over all positions that may write a token."""
    kind: str


class IndependentStructure(StructureKind):
    """Given the source, the token of a position does not depend on the other tokens."""

    kind: Literal["independent"] = "independent"


class CrfStructure(StructureKind):
    """A score for each pair of neighbouring tokens is added to the scores of the tokens: a
    linear-chain conditional random field (Sun et al. 2019). The best sequence as a whole is
    searched for.
    """

    output_form: ClassVar[str] = "chain"
    kind: Literal["crf"] = "crf"
    rank: int = Field(default=32, ge=1, le=1024)
    """Numbers for each token, whose products are the scores of pairs."""
    candidates: int = Field(default=64, ge=2, le=1024)
    """Tokens of each position that take part, the most probable ones; the vocabulary makes the loss
    exact."""
    transitions: Literal["static", "dynamic"] = "static"
    """Whether the score of a pair is the same everywhere, or follows from the decoder's states."""
    token_weight: float = Field(default=0.5, ge=0, le=10)
    """Weight of the loss of the tokens without the chain, beside that of the chain."""


class CtcStructure(StructureKind):
    """Each position writes a token or a blank; equal neighbours are one token (connectionist
    temporal classification, Graves et al. 2006). A sentence is the sum over its alignments.
    """

    output_form: ClassVar[str] = "alignment"
    sums_alignments: ClassVar[bool] = True
    kind: Literal["ctc"] = "ctc"


class GraphStructure(StructureKind):
    """Positions are the vertices of a directed acyclic graph with learned links; a sentence is the
    sum over the paths that write it (DA-Transformer, Huang et al. 2022)."""

    output_form: ClassVar[str] = "graph"
    sums_alignments: ClassVar[bool] = True
    kind: Literal["graph"] = "graph"
    link_heads: int = Field(default=4, ge=1, le=256)
    """Heads of the attention that scores links; must divide dim."""


StructureSettings = Annotated[
    IndependentStructure | CrfStructure | CtcStructure | GraphStructure,
    Field(discriminator="kind"),
]


class MaskInput(Settings):
    """A position whose token is not known reads one learned vector, and where it stands."""

    kind: Literal["mask"] = "mask"


class CopyInput(Settings):
    """A position whose token is not known reads the embedding of a source token.

    Position t of T reads source token round(t (S - 1) / (T - 1)) of S (uniform copy).
    """

    kind: Literal["copy"] = "copy"


InputSettings = Annotated[MaskInput | CopyInput, Field(discriminator="kind")]


class ParallelSettings(TransformerSettings):
    """A Transformer whose decoder computes all target positions at once."""

    kind: Literal["parallel"] = "parallel"
    length: LengthSettings = ClassifierLength()
    """How many positions the decoder has."""
    structure: StructureSettings = IndependentStructure()
    """How the outputs of the positions depend on each other."""
    input: InputSettings = MaskInput()
    """What the decoder reads where the token is not known."""

    @property
    def has_static_shapes(self) -> bool:
        """Whether the loss works on packed rows alone, and not on one sentence per row."""
        return not (self.structure.sums_alignments or isinstance(self.length, EditedLength))

    @model_validator(mode="after")
    def _check_combination(self) -> "ParallelSettings":
        if self.structure.kind not in self.length.structures:
            allowed = self.length.structures
            raise SettingsError(
                f"length.kind={self.length.kind} cannot be combined with "
                f"structure.kind={self.structure.kind}; set structure.kind to "
                f"{' or '.join(allowed)}",
                f"length.kind={self.length.kind} 不能与 structure.kind={self.structure.kind} "
                f"同用；请将 structure.kind 设为 {' 或 '.join(allowed)}",
            )
        if isinstance(self.structure, GraphStructure):
            check_heads(self.dim, self.structure.link_heads, key="structure.link_heads")
        self._check_copies()
        return self

    def _check_copies(self) -> None:
        """Refuse copies of source tokens that the decoder has no embedding for, or two kinds."""
        if isinstance(self.length, FertilityLength):
            if isinstance(self.input, CopyInput):
                raise SettingsError(
                    "input.kind=copy spreads copies evenly, but length.kind=fertility copies each "
                    "source token as often as its fertility says; leave input out",
                    "input.kind=copy 均匀地复制，而 length.kind=fertility 按繁衍率复制每个"
                    "源语言词元；请去掉 input",
                )
            if self.embedding.tied != "all":
                raise SettingsError(
                    "length.kind=fertility lets the decoder read source tokens, which needs one "
                    "embedding for both languages; set embedding.tied=all, or "
                    "length.kind=classifier",
                    "length.kind=fertility 让解码器读取源语言词元，两种语言须共用一个嵌入；请设 "
                    "embedding.tied=all，或 length.kind=classifier",
                )
        if isinstance(self.input, CopyInput) and self.embedding.tied != "all":
            raise SettingsError(
                "input.kind=copy lets the decoder read source tokens, which needs one embedding "
                "for both languages; set embedding.tied=all, or input.kind=mask",
                "input.kind=copy 让解码器读取源语言词元，两种语言须共用一个嵌入；请设 "
                "embedding.tied=all，或 input.kind=mask",
            )
        if isinstance(self.length, EditedLength) and isinstance(self.input, CopyInput):
            raise SettingsError(
                "input.kind=copy gives each position the source token at the same share of the "
                "length, but length.kind=edited inserts words anywhere; set input.kind=mask",
                "input.kind=copy 按位置所占长度的比例给出源词元，而 length.kind=edited "
                "可在任何地方插入词；请设 input.kind=mask",
            )


def output_form(model: Any) -> str:
    """What a model of these settings gives to a search."""
    if not isinstance(model, ParallelSettings):
        return "steps"
    return model.length.output_form or model.structure.output_form


def is_parallel(model: Any) -> bool:
    """Whether a translator of these settings computes all target positions at once."""
    return isinstance(model, ParallelSettings)
