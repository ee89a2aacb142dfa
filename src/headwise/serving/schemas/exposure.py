"""Bodies and replies of `POST /v1/exposure`: one sentence after a right and a wrong beginning."""

from pydantic import ConfigDict, Field

from headwise.serving.schemas.base import Body, ModelName, Reply, Sentences, Text, Whole
from headwise.serving.schemas.limits import (
    MAX_BEGINNING_CHARACTERS,
    MAX_BEGINNING_TOKENS,
    MAX_LIKELY,
)
from headwise.serving.schemas.trace import ChoiceReply, SideReply, Token
from headwise.serving.schemas.translation import InputWarningReply


class ExposureBody(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "The dog is old."},
                {"text": "The dog is old.", "wrong": "Eine", "reference": "Der Hund ist alt."},
            ]
        }
    )

    text: Text = Field(min_length=1, description="one sentence; it is not split")
    model: ModelName | None = None
    wrong: str = Field(
        default="",
        max_length=MAX_BEGINNING_CHARACTERS,
        description=(
            "the wrong beginning; without it the first token that the model finds most probable "
            "but for the right one"
        ),
    )
    wrong_tokens: list[Token] = Field(
        default=[],
        max_length=MAX_BEGINNING_TOKENS,
        description="the same as tokens; outranks `wrong`",
    )
    reference: Text = Field(
        default="", description="the right translation; without it the model's own counts as right"
    )
    likely: Whole = Field(default=8, ge=1, le=MAX_LIKELY, description="likely first tokens to tell")


class RankedTokenReply(ChoiceReply):
    rank: int = Field(description="1: nothing was more probable to the model")


class ForcedReply(Reply):
    text: str
    forced: int = Field(description="tokens that were forced")
    finished: bool
    side: SideReply
    tokens: list[RankedTokenReply] = Field(description="with the end, if it was written")


class DriftReply(Reply):
    reference: str = Field(description="the next token of the reference")
    own: str = Field(description="the next token of the model's own translation")
    agreement: bool = Field(description="whether both predict the same next token")
    total_variation: float
    cosine: float


class ExposureReply(Reply):
    model: str
    source_text: str
    sentences: Sentences
    warning: InputWarningReply
    target_text: str = Field(description="what the model writes by itself")
    likely: list[ChoiceReply] = Field(description="first tokens, the right one excepted")
    right: ForcedReply
    wrong: ForcedReply
    same: int = Field(
        description="tokens that both end with, the end included; 0 if they do not meet again"
    )
    positions: list[DriftReply] | None = Field(
        description=(
            "the decoder along the reference and along its own translation; null without a "
            "reference"
        )
    )
