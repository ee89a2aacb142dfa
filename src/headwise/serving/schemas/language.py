"""The bodies of requests and replies for language models, word vectors and runs.

Tested: limits, and replies equal to the library's results.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag

from headwise.serving.schemas.base import (
    Body,
    ModelName,
    Reply,
    Text,
    TextsBody,
    Whole,
    absent,
    describe_texts,
)
from headwise.serving.schemas.limits import MAX_CHARACTERS

MAX_COMPARED = 8
MAX_CONTINUATIONS, MAX_CONTINUATION_TOKENS = 50, 4


Scored = Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]
ScoredTexts = Annotated[list[Scored], Field(min_length=1, max_length=MAX_COMPARED)]


class ScoreBody(TextsBody):
    model_config = describe_texts(
        {"texts": ["the dog is old", "the dog old is"]}, {"text": "the dog is old"}
    )

    text: Annotated[
        Annotated[Scored, Tag("one")] | Annotated[ScoredTexts, Tag("several")],
        Discriminator(lambda given: "several" if isinstance(given, list) else "one"),
    ] = absent("one sentence or several, as /v1/translate has it")
    texts: ScoredTexts = absent("sentences to compare")
    model: ModelName | None = None


class TokenReply(Reply):
    token: str
    log_probability: float | None = Field(description="natural; null: impossible")
    known: bool


class SentenceReply(Reply):
    text: str
    log_probability: float | None
    perplexity: float | None
    unknown: int
    tokens: list[TokenReply]


class ScoreReply(Reply):
    model: str
    sentences: list[SentenceReply]
    best: int | None = Field(description="the most natural one; null where that cannot be said")
    no_best_because: Literal["tied", "unknown_words"] | None = Field(
        description=(
            "tied: equal totals; unknown_words: more than half of the words of a sentence are "
            "unknown to the model"
        )
    )


class PredictBody(Body):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "the company said it ____", "count": 3}]}
    )

    text: Text
    model: ModelName | None = None
    count: Whole = Field(default=10, ge=1, le=MAX_CONTINUATIONS)
    length: Whole = Field(
        default=1, ge=1, le=MAX_CONTINUATION_TOKENS, description="tokens of a continuation"
    )


class ContinuationReply(Reply):
    text: str
    tokens: list[str]
    log_probability: float
    probability: float


class PredictReply(Reply):
    model: str
    beginning: str
    predictions: list[ContinuationReply]


class VectorsBody(Body):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"queries": ["king", "king - man + woman"], "count": 5}]}
    )

    queries: (
        Annotated[
            list[Annotated[str, Field(min_length=1, max_length=100)]],
            Field(min_length=1, max_length=16),
        ]
        | None
    ) = Field(
        default=None,
        description=(
            "words, or sums such as king - man + woman; without them some that the model knows"
        ),
    )
    model: ModelName | None = None
    count: Whole = Field(default=10, ge=1, le=30)
    layout: Literal["pca", "tsne"] = "pca"


class NeighbourReply(Reply):
    word: str
    cosine: float


class NeighboursReply(Reply):
    query: str
    nearest: list[NeighbourReply]
    too_little_text: bool = Field(
        description="a sum of words, and too little training text for most such sums to work"
    )


class PlaceReply(Reply):
    word: str
    x: float
    y: float
    asked: bool


class VectorsReply(Reply):
    model: str
    vocabulary: int
    dim: int
    text_words: int | None = Field(
        description="words of text that the vectors were learnt from, where that is known"
    )
    queries: list[NeighboursReply]
    words: list[PlaceReply]


class RunReply(Reply):
    name: str
    task: str | None
    model: str | None
    changed: float
    size: int
    finished: bool
    scores: dict[str, float]


class NumberReply(Reply):
    """How a number of a run is called and read, in both languages."""

    title: dict[str, str]
    unit: str
    better: str | None = Field(description="higher, lower, or null where neither is better")
    help: dict[str, str] | None


class RunTaskReply(Reply):
    """What a task declares of its runs."""

    title: dict[str, str]
    metrics: dict[str, NumberReply] = Field(description="by their keys in logs and scores")
    results: dict[str, NumberReply] = Field(description="other numbers of `scores`, by their keys")


class RunsReply(Reply):
    runs: list[RunReply]
    tasks: dict[str, RunTaskReply] = Field(
        description="the tasks of these runs that this installation knows, by their words"
    )


class LogReply(Reply):
    name: str
    lines: list[dict[str, Any]]
    offset: int = Field(description="ask again with after=offset for what comes next")
    restarted: bool = Field(description="the log was cut back: discard earlier lines")
    finished: bool
    more: bool
    seconds_since_change: float
