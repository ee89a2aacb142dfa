"""The bodies of requests and replies for attention, positions and patterns.

Most of these routes need no model; `/v1/row` shows one row of a loaded one. A table holds at most
65,536 numbers, so every reply is small. Tested: limits, and replies equal to the library's results.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    JsonValue,
    create_model,
    model_validator,
)
from pydantic_core import PydanticKnownError

from headwise.attention.score_choices import DEFAULT_WEIGHTS, NORMALIZERS, find_scores
from headwise.errors import UsageError
from headwise.explorer.data.attention_patterns import find_shown
from headwise.positions.choices import BUILT_IN as POSITIONS
from headwise.positions.declaration import PositionKind
from headwise.serving.schemas.base import (
    WHOLE,
    Body,
    ModelName,
    Reply,
    Sentences,
    Text,
    Whole,
    as_whole,
)
from headwise.serving.schemas.limits import MAX_TOKENS
from headwise.settings import Settings
from headwise.settings.added_kinds import FoundKinds
from headwise.settings.kind import join_words

MAX_ROWS, MAX_COLUMNS = 64, 16
MAX_LENGTH, MAX_DIM = 256, 256
MAX_CURVE = 401
Number = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
Table = Annotated[
    list[Annotated[list[Number], Field(min_length=1, max_length=MAX_COLUMNS)]],
    Field(min_length=1, max_length=MAX_ROWS),
]


def one_of(found: FoundKinds[Any]) -> Any:
    """The annotation of a word that names one of these kinds; the description lists them.

    The packages that add kinds are imported once for it, when the server starts, and never by a
    request. Why a package cannot be used is in the server's log and not told to clients, because
    such a reason may contain paths of the server.
    """
    known: list[JsonValue] = list(found.usable)
    expected = join_words(map(repr, known), " or ")

    def check(word: str) -> str:
        if word in found.refused:
            packages = ", ".join(found.refused[word].packages)
            raise UsageError(
                f"the word comes from the package {packages}, which cannot be used; choose "
                f"{expected}, or ask the operator, whose log has the reason",
                f"该词由软件包 {packages} 提供，而它无法使用；"
                f"请改用 {expected.replace(' or ', ' 或 ')}，或询问运维人员，原因见其日志",
            )
        if word not in known:
            raise PydanticKnownError("literal_error", {"expected": expected})
        return word

    return AfterValidator(check), Field(json_schema_extra={"enum": known})


_NORMALIZERS = FoundKinds({kind.word(): kind for kind in NORMALIZERS}, {})
_SHOWN = find_shown()
ScoreName = Annotated[str, *one_of(find_scores())]
WeightsName = Annotated[str, *one_of(_NORMALIZERS)]
KernelName = Annotated[str, *one_of(_SHOWN)]


class AttendParameters(Body):
    """Parameters of a learned score."""

    W_q: Table | None = None
    W_k: Table | None = None
    w_v: Table | None = None
    W: Table | None = None
    v: Table | None = None


class AttendBody(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"example": "waist", "queries": [[57.0]], "curve": 5},
                {
                    "keys": [[1.0, 0.0], [0.0, 1.0]],
                    "values": [[10.0], [20.0]],
                    "queries": [[3.0, 1.0]],
                },
            ]
        }
    )

    example: Literal["waist", "two-column"] | None = Field(
        default=None, description="numbers of an example that chapter 11 of the guide works by hand"
    )
    keys: Table | None = None
    values: Table | None = None
    queries: Table | None = Field(default=None, description="without them those of the example")
    score: ScoreName | None = Field(
        default=None, description="without it the example's own, or scaled_dot"
    )
    weights: WeightsName = DEFAULT_WEIGHTS.kind
    width: float | None = Field(default=None, ge=0.01, le=1000, description="of the gaussian score")
    scale: float | None = Field(default=None, ge=0.01, le=1000, description="of the cosine score")
    parameters: AttendParameters = Field(
        default=AttendParameters(),
        description="of a learned score; what is not given is drawn from the seed",
    )
    seed: Whole = Field(default=1, ge=0, le=2**31 - 1)
    curve: Whole = Field(
        default=0,
        ge=0,
        le=MAX_CURVE,
        description="points of the answer to any query, where all are single numbers",
    )


class CurveReply(Reply):
    queries: list[float]
    outputs: list[float]


class AttendReply(Reply):
    """Every number of the three steps, as `headwise attend --json` prints them."""

    queries: list[list[float]]
    keys: list[list[float]]
    values: list[list[float]]
    scores: list[list[float]]
    weights: list[list[float]]
    outputs: list[list[float]]
    parameters: dict[str, list[list[float]]]
    seed: int | None
    attention: dict[str, Any]
    formula: str
    curve: CurveReply | None = None


class RowBody(Body):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "The dog is old.", "kind": "cross", "query": 1}]}
    )

    text: Text
    model: ModelName | None = None
    target: Text | None = Field(
        default=None, description="the translation to read; without it the model's own"
    )
    kind: Literal["encoder_self", "decoder_self", "cross"] = "cross"
    layer: Whole = Field(default=-1, ge=-1, le=1_000, description="from 0; -1 is the highest")
    head: Whole = Field(default=0, ge=0, le=1_000)
    query: Whole = Field(default=0, ge=0, le=MAX_TOKENS, description="index of the query's token")


class RowReply(Reply):
    model: str
    sentences: Sentences
    kind: str
    layer: int
    head: int
    query: int
    num_layers: int
    num_heads: int
    query_pieces: list[str]
    key_pieces: list[str]
    head_dim: int
    q: list[float]
    keys: list[list[float]] = Field(description="first dimensions of each key")
    values: list[list[float]]
    products: list[float]
    bias: list[float] | None
    scores: list[float]
    visible: list[bool]
    exponentials: list[float] | None
    weights: list[float]
    output: list[float]
    is_softmax: bool


# Recipes are validated leniently (0 for false, "16" for 16, no kind for the default); requests are
# not.
class StrictPositionSettings(Settings, strict=True):
    @model_validator(mode="before")
    @classmethod
    def _take_whole_numbers(cls, given: Any) -> Any:
        return (
            {name: as_whole(value) for name, value in given.items()}
            if isinstance(given, dict)
            else given
        )


def _strict(kind: type[PositionKind]) -> type[PositionKind]:
    """The settings of a position encoding, validated strictly."""
    word = kind.word()
    parents: Any = (StrictPositionSettings, kind)
    required: Any = (Literal[word], ...)
    # Its words on each field are inherited: looking for them here walks through every module.
    silent = {"use_attribute_docstrings": False}
    return create_model(
        f"{kind.__name__}Options", __base__=parents, __cls_kwargs__=silent, kind=required
    )


if TYPE_CHECKING:
    PositionOptions = PositionKind
else:
    PositionOptions = Annotated[
        Union[tuple(_strict(kind) for kind in POSITIONS)],  # noqa: UP007 - made from a list
        Field(discriminator="kind"),
    ]


class PositionsBody(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"position": {"kind": POSITIONS[0].word()}, "length": 16, "dim": 32}]
        }
    )

    position: PositionOptions | None = Field(
        default=None, description="without it the model's own, or sinusoidal"
    )
    model: ModelName | None = Field(default=None, description="show what this model has learned")
    length: Whole = Field(default=64, ge=2, le=MAX_LENGTH)
    dim: Whole = Field(default=64, ge=2, le=MAX_DIM, multiple_of=2)
    heads: Whole = Field(default=4, ge=1, le=16)


class CurveOfHead(Reply):
    head: int | None
    values: list[float]


class PositionsReply(Reply):
    kind: str
    formula: str
    origin: Literal["formula", "drawn", "model"]
    rows: Literal["position", "distance"]
    first_row: int
    table: list[list[float]] | None
    curve: Literal["product", "bias", "bucket"]
    first_distance: int
    curves: list[CurveOfHead]


class PatternsBody(Body):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"kind": next(iter(_SHOWN.usable)), "length": 32}]}
    )

    kind: KernelName
    length: Whole = Field(default=64, ge=8, le=128)
    size: Annotated[int, Field(ge=1, le=64), WHOLE] | None = Field(
        default=None, description="window, block, rank … whatever the kind counts"
    )
    causal: bool = False
    seed: Whole = Field(default=0, ge=0, le=2**31 - 1)


class PatternReply(Reply):
    kind: str
    length: int
    is_causal: bool
    weights: list[list[float]]
    num_pairs: int
    share: float
    rank: int
    settings: dict[str, Any]


class CostReply(Reply):
    name: str
    shipped: bool
    machine: dict[str, str]
    conditions: dict[str, str]
    points: list[dict[str, Any]]


class CostsReply(Reply):
    costs: list[CostReply]


class BilingualText(Reply):
    """The same text in both languages."""

    en: str
    zh: str


class KindReply(Reply):
    """One kind of a setting, as it declares itself."""

    kind: str
    title: BilingualText
    summary: BilingualText
    paper: str


class SizeReply(Reply):
    label: BilingualText
    value: int


class AttentionKindReply(KindReply):
    cost: str
    memory: str | None
    roles: list[str]
    masks: list[str]
    size: SizeReply | None
    has_own_weights: bool


class FormulaKindReply(KindReply):
    formula: str


class ScoreKindReply(FormulaKindReply):
    number: str | None


class PositionKindReply(FormulaKindReply):
    needs_model: bool


class KindsReply(Reply):
    """Every kind a recipe can name, those of installed packages included."""

    attention: list[AttentionKindReply]
    scores: list[ScoreKindReply]
    weights: list[KindReply]
    positions: list[PositionKindReply]
    norms: list[FormulaKindReply]
    feed_forwards: list[FormulaKindReply]
    examples: dict[str, str] = Field(description="the score of each example worked by hand")
