"""Base classes and field types that all request and reply bodies share, and the error reply.

Every number and list is limited; the OpenAPI description is generated from these classes. Unknown
fields are refused, and text is not converted to numbers. Tested: limits, examples, and the OpenAPI
description with schemathesis.
"""

from typing import Annotated, Any, Self

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
    MAX_CHARACTERS,
    MAX_PHRASE_CHARACTERS,
    MAX_PHRASES,
    MAX_TEXTS,
)


class Body(BaseModel):
    """Base of request bodies: strict, without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Reply(BaseModel):
    """Base of replies."""

    model_config = ConfigDict(frozen=True)


def as_whole(given: Any) -> Any:
    """4 for 4.0; anything else unchanged."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


WHOLE = BeforeValidator(as_whole)
"""Goes after the limits, `Annotated[int, Field(ge=1), WHOLE]`; otherwise pydantic omits the limits
from the description."""
Whole = Annotated[int, WHOLE]
"""An integer as JSON Schema defines it: 4.0 is one, "4" and true are not."""
Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)]
TextOrTexts = Annotated[
    Annotated[Text, Tag("one")] | Annotated[Texts, Tag("several")],
    # The discriminator keeps the error for a text that is too long from saying that it is no list.
    Discriminator(lambda given: "several" if isinstance(given, list) else "one"),
]
EXACTLY_ONE = "exactly_one"
"""Type of the validation error of a body with both `text` and `texts`, or neither."""
UNION_FIELDS = frozenset({"text", "q", "decoding"})
"""In the location of a validation error, the tag of a union follows these fields."""
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
    """Base of bodies with texts: `text` is one or several, `texts` a list; exactly one is given."""

    text: Any
    texts: Any

    @model_validator(mode="after")
    def _require_one(self) -> Self:
        if len({"text", "texts"} & self.model_fields_set) != 1:
            raise PydanticCustomError(EXACTLY_ONE, "exactly one of text and texts")
        return self

    @property
    def all_texts(self) -> list[str]:
        """The texts, from whichever field was given."""
        given = self.text if "text" in self.model_fields_set else self.texts
        return [given] if isinstance(given, str) else list(given)


def describe_texts(*examples: dict[str, Any]) -> ConfigDict:
    """The configuration of a `TextsBody`, which describes that exactly one of the fields is
    required.
    """
    either: list[Any] = [{"required": ["text"]}, {"required": ["texts"]}]
    return ConfigDict(json_schema_extra={"oneOf": either, "examples": list(examples)})


def absent(description: str) -> Any:
    """A field that may be left out, but may not be null."""
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
        (422, "a field is out of bounds, or the request is not possible"),
        (429, "too many requests; see Retry-After"),
        (503, "full, not ready or stopping; see Retry-After"),
        (504, "no answer within the deadline"),
    )
}
"""Errors that any route may return."""
