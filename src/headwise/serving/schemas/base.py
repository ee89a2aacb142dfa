"""What is sent and what comes back, with every number and list bounded: the OpenAPI description is
written from here.

Unknown fields are refused, numbers are not guessed from texts. Tested: bounds, examples,
schemathesis on the description.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from headwise.serving.schemas.limits import (
    MAX_BEAM,
    MAX_BEST,
    MAX_CHARACTERS,
    MAX_PHRASE_BYTES,
    MAX_PHRASE_CHARACTERS,
    MAX_PHRASES,
    MAX_TEXTS,
)


class Body(BaseModel):
    """Base of what is sent: strict and closed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Reply(BaseModel):
    """Base of what comes back."""

    model_config = ConfigDict(frozen=True)


def as_whole(given: Any) -> Any:
    """4 for 4.0; anything else as it is."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


WHOLE = BeforeValidator(as_whole)
"""After the bounds: `Annotated[int, Field(ge=1), WHOLE]`, or pydantic leaves the bounds out of the
description."""
Whole = Annotated[int, WHOLE]
"""A whole number as JSON Schema means it: 4.0 is one, "4" and true are not."""
Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)]
TextOrTexts = Annotated[
    Annotated[Text, Tag("one")] | Annotated[Texts, Tag("several")],
    # Told apart beforehand: whoever sends a text that is too long is not told that it is no list.
    Discriminator(lambda given: "several" if isinstance(given, list) else "one"),
]
EXACTLY_ONE = "exactly_one"
"""The type of the fault of a body that has both `text` and `texts`, or neither."""
UNION_FIELDS = frozenset({"text", "q", "decoding"})
"""After these, where a fault is, stands the name of the union's member."""
Phrases = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=MAX_PHRASE_CHARACTERS)]],
    Field(max_length=MAX_PHRASES),
]
ModelName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        description="a name of /v1/models; without it the first that fits",
    ),
]
Sentences = Annotated[
    list[str],
    Field(
        description=(
            "of the text, as /v1/translate splits it; where there are several, they were read "
            "here as one"
        )
    ),
]


class TextsBody(Body):
    """Base of bodies that hold texts: `text` is one or several, `texts` a list; exactly one of the
    two is given.
    """

    text: Any
    texts: Any

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if len({"text", "texts"} & self.model_fields_set) != 1:
            raise PydanticCustomError(EXACTLY_ONE, "exactly one of text and texts")
        return self

    @property
    def all_texts(self) -> list[str]:
        """Whichever of the two was given, as a list."""
        given = self.text if "text" in self.model_fields_set else self.texts
        return [given] if isinstance(given, str) else list(given)


def describe_texts(*examples: dict[str, Any]) -> ConfigDict:
    """The settings of a `TextsBody`: its description says that exactly one of the two is required."""
    either: list[Any] = [{"required": ["text"]}, {"required": ["texts"]}]
    return ConfigDict(json_schema_extra={"oneOf": either, "examples": list(examples)})


def absent(description: str) -> Any:
    """A field that may be left out, but not be null."""
    return Field(default=None, description=description, json_schema_extra=_without_default)


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


class ErrorBody(Reply):
    code: str
    message: str
    message_zh: str


class ErrorReply(Reply):
    """Why a request was not answered."""

    error: ErrorBody


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorReply, "description": description}
    for status, description in (
        (400, "not JSON"),
        (401, "no key was given"),
        (403, "the key is not known"),
        (404, "no such model"),
        (408, "the body took too long to arrive"),
        (413, "the body is too large"),
        (415, "the body is not application/json"),
        (422, "a field is out of bounds, or the wish cannot be granted"),
        (429, "too many requests; see Retry-After"),
        (503, "full, not ready or stopping; see Retry-After"),
        (504, "no answer within the deadline"),
    )
}
"""What any address may answer instead."""


class GreedyWish(Body):
    """The most probable token at every step."""

    kind: Literal["greedy"]


class BeamWish(Body):
    """The best of several hypotheses."""

    kind: Literal["beam"]
    size: Whole = Field(default=5, ge=1, le=MAX_BEAM)
    length_penalty: float = Field(
        default=1.0, ge=-10, le=10, description="alpha: 0 ignores the length, 1 is the mean"
    )


class SamplingWish(Body):
    """Tokens drawn at random; the same seed draws the same."""

    kind: Literal["sampling"]
    temperature: float = Field(default=1.0, ge=0.01, le=10)
    top_k: Whole = Field(default=0, ge=0, le=1_000)
    top_p: float = Field(default=1.0, ge=0.01, le=1)
    seed: Whole = Field(default=1, ge=0, le=2**31 - 1)


DecodingWish = Annotated[GreedyWish | BeamWish | SamplingWish, Field(discriminator="kind")]


class TranslateBody(TextsBody):
    model_config = describe_texts(
        {"text": "The dog is old."},
        {
            "texts": ["The dog is old.", "It rains."],
            "decoding": {"kind": "beam", "size": 4},
            "n_best": 2,
        },
        {"text": "The dog is old.", "forbid": ["Hund"], "require": ["sehr alt"]},
    )

    text: TextOrTexts = absent(
        "one text or several; each may hold several sentences and paragraphs"
    )
    texts: Texts = absent("the same as a list, as /v1/score has it")
    model: ModelName | None = None
    decoding: DecodingWish | None = Field(
        default=None, description="how to search; without it as the model's recipe says"
    )
    n_best: Whole = Field(
        default=1, ge=1, le=MAX_BEST, description="translations of each text, best first"
    )
    prefix: str = Field(
        default="", max_length=200, description="every translation begins like this"
    )
    forbid: Phrases = Field(
        default=[],
        description=(
            "words or phrases that occur in no translated sentence; whole words, in scripts "
            f"without spaces any occurrence; at most {MAX_PHRASE_BYTES} bytes of UTF-8 together "
            "with `require`"
        ),
    )
    require: Phrases = Field(
        default=[],
        description=(
            "words or phrases that occur in every translated sentence, counted in the same way; "
            f"needs decoding of kind beam; at most {MAX_PHRASE_BYTES} bytes of UTF-8 together "
            "with `forbid`"
        ),
    )
    split: bool = Field(
        default=True, description="translate sentence by sentence; false: each text is one sentence"
    )
    stream: bool = Field(
        default=False, description="server-sent events while the translation grows"
    )


class CandidateReply(Reply):
    text: str
    score: float
    log_probability: float


class WarningReply(Reply):
    """The text is unlike what the model learned to read; its translation may be nonsense."""

    code: Literal["unknown_words", "target_language", "other_language"]
    message: str
    message_zh: str


InputWarningReply = Annotated[
    WarningReply | None,
    Field(description="why the text is unlike what the model learned to read; null if it is not"),
]


class TranslationReply(Reply):
    text: str
    truncated: bool = Field(description="the length limit cut the translation")
    warning: InputWarningReply
    n_best: list[CandidateReply]


class TranslateReply(Reply):
    model: str
    translations: list[TranslationReply]


class ModelReply(Reply):
    name: str
    kind: Literal["translator", "language_model", "word_vectors", "classifier", "tagger"]
    source: str | None = None
    target: str | None = None
    architecture: str | None = Field(
        default=None,
        description=(
            "of a translator: encoder_decoder or recurrent; of a language model that attends: "
            "decoder_only"
        ),
    )


class ModelsReply(Reply):
    models: list[ModelReply]
    runs: bool = Field(default=False, description="whether trainings can be watched, see /v1/runs")


class StatusReply(Reply):
    status: Literal["alive", "ready", "starting", "stopping", "broken"]
