"""Bodies and replies about memories of stored neighbours: the options of a request, and `POST
/v1/memory`, which tells what the memory of a model said at every token of a translation.
"""

from pydantic import ConfigDict, Field

from headwise.serving.schemas.base import Body, ModelName, Reply, Sentences, Text, Whole
from headwise.serving.schemas.limits import MAX_EXAMPLES
from headwise.serving.schemas.trace import ChoiceReply, SideReply
from headwise.serving.schemas.translation import (
    AnyDecodingOptions,
    InputWarningReply,
    MemoryWeight,
)


class MemoryBody(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "The dog is old."},
                {"text": "The dog is old.", "weight": 0.5, "examples": 3},
            ]
        }
    )

    text: Text = Field(min_length=1, description="one sentence; it is not split")
    model: ModelName | None = Field(
        default=None, description="a name of /v1/models; without it the first with a memory"
    )
    decoding: AnyDecodingOptions | None = Field(
        default=None, description="how to search; without it as the model's recipe says"
    )
    weight: MemoryWeight = None
    examples: Whole = Field(
        default=6, ge=1, le=MAX_EXAMPLES, description="stored examples to tell for each token"
    )


class StoredExampleReply(Reply):
    """A stored token and the sentence pair it stands in."""

    piece: str = Field(description="the stored token, for which it votes")
    agrees: bool = Field(description="whether that is the token that was written")
    share: float = Field(description="of the votes of all neighbours")
    distance: float = Field(description="squared, between the two states")
    corpus: str
    line: int
    source: str
    before: str = Field(description="of the target sentence, before the word of the token")
    word: str = Field(description="the word; empty for the end of the sentence")
    after: str


class MemoryPlaceReply(Reply):
    """One token of the translation."""

    token: int
    piece: str
    weight: float = Field(description="λ")
    model_probability: float
    memory_probability: float
    probability: float = Field(description="λ · memory + (1 − λ) · model")
    model_best: ChoiceReply = Field(description="what the model alone finds most probable here")
    changed: bool = Field(
        description="whether the mixture prefers what was written, and the model alone does not"
    )
    examples: list[StoredExampleReply] = Field(description="largest share first")
    left_out: int = Field(description="neighbours that are not told")
    left_out_share: float


class MemoryReply(Reply):
    model: str
    decoding: str
    source_text: str
    sentences: Sentences
    warning: InputWarningReply
    target_text: str
    text_alone: str = Field(description="the translation without the memory")
    neighbours: int
    temperature: float
    target: SideReply = Field(description="the written tokens, with the end if it was written")
    places: list[MemoryPlaceReply]
