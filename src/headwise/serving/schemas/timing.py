"""Bodies and replies of `POST /v1/time` and `POST /v1/wordings`."""

from typing import Literal

from pydantic import ConfigDict, Field

from headwise.serving.schemas.base import Body, ModelName, Reply, Text, Whole
from headwise.serving.schemas.limits import MAX_REPEATS, MAX_WORDINGS
from headwise.serving.schemas.translation import AnyDecodingOptions


class TimeBody(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "The dog is old."}]})

    text: Text = Field(min_length=1, description="one sentence; it is not split")
    model: ModelName | None = None
    decoding: AnyDecodingOptions | None = Field(
        default=None, description="how to search; without it as the model's recipe says"
    )
    repeats: Whole = Field(default=5, ge=1, le=MAX_REPEATS, description="measurements")


class TimeReply(Reply):
    model: str
    decoding: str
    text: str
    tokens: int = Field(description="of the translation, its end not counted")
    passes: int = Field(description="how often the search asked the model")
    seconds: list[float] = Field(
        description="of each measurement, from the text to the translated text; one before the "
        "first is not counted"
    )
    device: str
    threads: int = Field(description="of the processor that torch computes with")


class WordingsBody(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"first": 0, "count": 2}]})

    model: ModelName | None = None
    first: Whole = Field(
        default=0, ge=0, le=1000, description="the first of the ambiguous test sentences"
    )
    count: Whole = Field(default=16, ge=1, le=MAX_WORDINGS, description="sentences")


class MarkedWordReply(Reply):
    text: str
    origin: Literal["first", "second", "both", "neither"] = Field(
        description="which right translation it is a part of, in this order of words"
    )


class JudgedReply(Reply):
    source: str
    right: list[str] = Field(description="both right translations, the usual one first")
    text: str = Field(description="what the model wrote")
    verdict: Literal["first", "second", "mixture", "other"]
    words: list[MarkedWordReply]


class WordingsReply(Reply):
    model: str
    sentences: list[JudgedReply]
