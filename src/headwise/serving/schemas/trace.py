"""The bodies of requests and replies of `POST /v1/trace` and `POST /v1/occlude`, which show how a
model translates a sentence.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from headwise.serving.schemas.base import WHOLE, Body, ModelName, Reply, Sentences, Text, Whole
from headwise.serving.schemas.limits import MAX_BEAM, MAX_TOKENS, MAX_TOP
from headwise.serving.schemas.records import AnyRecordReply
from headwise.serving.schemas.translation import AnyDecodingOptions, InputWarningReply

Kind = Literal["encoder_self", "decoder_self", "cross"]
Number = Annotated[int, Field(ge=0, le=255), WHOLE]
Token = Annotated[int, Field(ge=0, le=2**31 - 1), WHOLE]


class TraceBeam(Body):
    """The beam search whose tree is shown; unused if the model does not generate token by token."""

    size: Whole = Field(default=4, ge=1, le=MAX_BEAM)
    alpha: float = Field(
        default=1.0, ge=0, le=2, description="length penalty: 0 ignores the length, 1 is the mean"
    )
    penalty: Literal["average", "wu"] = Field(
        default="average", description="total / n^alpha, or Wu et al. 2016"
    )


class TraceMaps(Body):
    """The attention weights to return; layers and heads count from 0, and by default all are
    returned.
    """

    kinds: list[Kind] = Field(default=["cross"], min_length=1, max_length=3)
    layers: Annotated[list[Number], Field(min_length=1, max_length=64)] | None = None
    heads: Annotated[list[Number], Field(min_length=1, max_length=64)] | None = None
    bits: Annotated[Literal[8, 16], WHOLE] = Field(
        default=8, description="of each weight; weight = low + number · scale / (2^bits − 1)"
    )


class TraceBody(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "The dog is old."},
                {
                    "text": "The dog is old.",
                    "beam": {"size": 4},
                    "top": 5,
                    "tree": True,
                    "maps": {"kinds": ["cross"]},
                },
                {"text": "The dog is old.", "decoding": {"kind": "drafted"}, "passes": True},
            ]
        }
    )

    text: Text = Field(min_length=1, description="one sentence; it is not split")
    model: ModelName | None = None
    prefix: str = Field(
        default="", max_length=2_000, description="the translation begins like this"
    )
    prefix_tokens: list[Token] = Field(
        default=[], max_length=MAX_TOKENS, description="the same as tokens; outranks `prefix`"
    )
    beam: TraceBeam = TraceBeam()
    decoding: AnyDecodingOptions | None = Field(
        default=None,
        description="another search to trace, as /v1/translate takes it; outranks `beam`",
    )
    top: Whole = Field(
        default=0, ge=0, le=MAX_TOP, description="alternatives to tell for each step"
    )
    tree: bool = Field(default=False, description="whether to tell the whole search")
    passes: bool = Field(
        default=False,
        description=(
            "whether to tell what each pass wrote, and what was considered, if several tokens are "
            "written at once"
        ),
    )
    maps: TraceMaps | None = Field(
        default=None, description="attention weights; at most 4,000,000 in a reply"
    )


class SideReply(Reply):
    language: str
    pieces: list[str]
    words: list[str]
    word_of_piece: list[int]
    marks: list[bool] = Field(
        description="which pieces are special tokens: beginning and end of the sentence"
    )


class ChoiceReply(Reply):
    token: int
    piece: str
    log_probability: float


class StepReply(Reply):
    chosen: ChoiceReply
    rank: int = Field(description="1: nothing was more probable")
    entropy: float = Field(description="in nats")
    best: list[ChoiceReply]


class NodeReply(Reply):
    number: int
    parent: int = Field(description="0 is the root")
    step: int
    token: int
    piece: str
    log_probability: float
    total: float
    score: float
    fate: Literal["kept", "pruned", "finished"]


class TreeReply(Reply):
    nodes: list[NodeReply]
    leaves: list[int] = Field(description="the nodes of n_best")


class ReadTokenReply(Reply):
    token: int
    piece: str
    deleted: bool = Field(description="deleted, or hidden to be predicted anew")
    deletion_probability: float | None = Field(
        description="null if the model does not decide which tokens are deleted"
    )


class WrittenTokenReply(ChoiceReply):
    is_new: bool = Field(description="predicted in this pass")


class PassReply(Reply):
    before: list[ReadTokenReply] = Field(description="what the pass started from")
    after: list[WrittenTokenReply] = Field(
        description=(
            "what it wrote; the tokens before that were not deleted are, in order, those that are "
            "not new; a log_probability is that of the pass that predicted the token"
        )
    )


class HypothesisReply(Reply):
    text: str
    tokens: list[int]
    pieces: list[str]
    score: float
    log_probability: float
    token_log_probabilities: list[float]
    finished: bool


class PresentReply(Reply):
    kind: Kind
    layer: int
    heads: int = Field(description="how many")


class TraceReply(Reply):
    model: str
    source_text: str
    sentences: Sentences
    warning: InputWarningReply
    decoding: str | None = Field(
        description=(
            "the kind of decoding that was traced: beam if the model generates token by token, "
            "otherwise the model's own; null for a language model, which reads the text"
        )
    )
    target_text: str
    source: SideReply
    target: SideReply = Field(description="as predicted, with its end")
    target_input: SideReply = Field(description="as read: begins with <s>")
    prefix_length: int = Field(description="tokens that were forced")
    n_best: list[HypothesisReply]
    steps: list[StepReply]
    tree: TreeReply | None = Field(
        description="null unless asked for; always null if the decoding records no tree"
    )
    passes: list[PassReply] | None = Field(
        description=(
            "of the best translation; null unless asked for, or if the model generates token by "
            "token"
        )
    )
    record: AnyRecordReply | None = Field(
        description=(
            "what the decoding considered for the best translation: lengths, fertilities, an "
            "alignment, a graph or drafts; null unless passes were asked for, or if the decoding "
            "keeps none"
        )
    )
    attention: list[PresentReply] = Field(
        description="all maps the model has; empty unless maps were asked for"
    )
    maps: list[dict[str, Any]] = Field(
        description=(
            "name, kind, layer, heads, shape [head, query, key], low (0, or the lowest weight if "
            "some are negative), scale, bits, weights (base64, lowest byte first)"
        )
    )


class OccludeBody(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "The dog is old."}]})

    text: Text = Field(min_length=1, description="one sentence")
    model: ModelName | None = None
    tokens: list[Token] | None = Field(
        default=None,
        max_length=MAX_TOKENS,
        description="of the translation to test; without it the model's own best",
    )


class OccludeReply(Reply):
    model: str
    sentences: Sentences
    words: list[str] = Field(description="of the source; each was left out once")
    pieces: list[str] = Field(description="of the translation, with its end")
    log_probability: float = Field(description="of the translation, nothing left out")
    totals: list[float] = Field(
        description="how much less probable (log) the translation is without each word"
    )
    changes: list[list[float]] = Field(description="the same for every piece: [word][piece]")
