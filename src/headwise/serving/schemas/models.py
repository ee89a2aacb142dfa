"""The replies of the server about itself: its models, and whether it is ready."""

from typing import Literal

from pydantic import Field

from headwise.serving.schemas.base import Reply


class OptionReply(Reply):
    name: str
    value: float = Field(description="where a request leaves it out")
    low: float
    high: float
    is_whole: bool


class DecodingReply(Reply):
    kind: str
    records: bool = Field(
        description="whether /v1/trace tells its passes, or what it considered, with `passes`"
    )
    options: list[OptionReply] = Field(description="what a request may set")


class MemoryFacts(Reply):
    """The store of neighbours that a translator is served with."""

    entries: int = Field(description="stored tokens")
    lines: int = Field(description="stored sentence pairs")
    neighbours: int
    temperature: float
    weight: float | None = Field(description="λ; null if it depends on the distance")
    tuned: bool


class ModelReply(Reply):
    name: str
    kind: Literal["translator", "language_model", "word_vectors", "classifier", "tagger"]
    source: str | None = None
    target: str | None = None
    architecture: str | None = Field(
        default=None,
        description=(
            "of a translator: encoder_decoder, recurrent or parallel; of a language model that "
            "attends: decoder_only"
        ),
    )
    output_form: str | None = Field(
        default=None,
        description=(
            "what a translator gives to a search: steps if it writes token by token, otherwise "
            "positions, cut_positions, chain, copies, revisions, alignment or graph"
        ),
    )
    decodings: list[DecodingReply] = Field(
        default=[], description="the searches that a translator can follow, its own first"
    )
    pocket_wordings: Literal["both", "one", "other"] | None = Field(
        default=None,
        description=(
            "of a translator of the pocket corpus: both if it was trained on two right wordings of "
            "some sentences, one if on one, other if on other text, such as a teacher's "
            "translations; null for other corpora"
        ),
    )
    memory: MemoryFacts | None = Field(
        default=None, description="of a translator: its memory, if it is served with one"
    )


class ModelsReply(Reply):
    models: list[ModelReply]
    runs: bool = Field(default=False, description="whether trainings can be watched, see /v1/runs")


class StatusReply(Reply):
    status: Literal["alive", "ready", "starting", "stopping", "broken"]
