"""The replies of the server about itself: its models, and whether it is ready."""

from typing import Literal

from pydantic import Field

from headwise.serving.schemas.base import Reply


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
