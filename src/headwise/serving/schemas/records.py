"""Schemas of the part of `POST /v1/trace` that shows how a translation was found.

Each kind of decoding has its own class: the lengths that were tried, the fertilities of source
tokens, the CTC grid, the graph, the rounds of drafting. The field `kind` of a reply tells the
class. Log-probabilities are at least -1e9, since JSON has no infinity. The classes are filled from
decoding/records.py by serving/api/record_reply.py.
"""

from typing import Annotated, Literal

from pydantic import Field

from headwise.serving.schemas.base import Reply


class SymbolReply(Reply):
    token: int
    piece: str = Field(description="the blank of CTC is empty")
    log_probability: float


class LengthReply(Reply):
    length: int = Field(description="in tokens, the end of the sentence included")
    log_probability: float
    score: float = Field(description="mean log-probability per token of what it led to")


class LengthsReply(Reply):
    kind: Literal["lengths"]
    lengths: list[LengthReply] = Field(description="those that were tried, most probable first")
    chosen: int = Field(description="the place of the one that was taken, from 0")


class FertilityReply(Reply):
    count: int = Field(description="how often the source token was copied")
    log_probability: float = Field(description="of the count, before the limits of the length")


class FertilitiesReply(Reply):
    kind: Literal["fertilities"]
    fertilities: list[FertilityReply] = Field(description="of each piece of `source`")


class PositionReply(Reply):
    best: list[SymbolReply] = Field(description="the most probable symbols, best first")
    chosen: SymbolReply = Field(description="the symbol of the alignment that was collapsed")
    written: int | None = Field(
        description="which token of the translation it is merged into; null for a blank"
    )


class AlignmentReply(Reply):
    kind: Literal["alignment"]
    num_positions: int = Field(description="of the sentence; the first 1,024 are told")
    positions: list[PositionReply]


class LinkReply(Reply):
    vertex: int
    log_probability: float


class VertexReply(Reply):
    best: list[SymbolReply] = Field(description="the most probable tokens, best first")
    links: list[LinkReply] = Field(description="the most probable links to later vertices")


class GraphReply(Reply):
    kind: Literal["graph"]
    num_vertices: int = Field(description="of the sentence; the first 1,024 are told")
    vertices: list[VertexReply]
    path: list[int] = Field(description="the vertices that wrote the translation, with both ends")


class DraftRoundReply(Reply):
    draft: list[SymbolReply] = Field(description="with their log-probabilities by the verifier")
    num_accepted: int = Field(description="so many of the draft were written, from the first on")
    own: SymbolReply | None = Field(
        description="the verifier's own token after them; null if the sentence had ended"
    )


class DraftsReply(Reply):
    kind: Literal["drafts"]
    rounds: list[DraftRoundReply]


AnyRecordReply = Annotated[
    LengthsReply | FertilitiesReply | AlignmentReply | GraphReply | DraftsReply,
    Field(discriminator="kind"),
]
