"""Converts a record of a decoding (decoding/records.py) to its reply (serving/schemas/records.py).

A record holds token ids; the reply names each token by its text, a word or a part of one.

Tested through `/v1/trace`, for each decoding.
"""

from collections.abc import Sequence
from itertools import groupby

from headwise.decoding.records import (
    AlignmentRecord,
    DraftRecord,
    FertilityRecord,
    GraphRecord,
    LengthRecord,
    Record,
)
from headwise.explorer.data.next_token_choices import name_token
from headwise.serving.schemas.records import (
    AlignmentReply,
    AnyRecordReply,
    DraftRoundReply,
    DraftsReply,
    FertilitiesReply,
    FertilityReply,
    GraphReply,
    LengthReply,
    LengthsReply,
    LinkReply,
    PositionReply,
    SymbolReply,
    VertexReply,
)
from headwise.text.tokenizer import PAD, Tokenizer


def record_reply(record: Record, tokenizer: Tokenizer) -> AnyRecordReply:
    """A record with the pieces of the target's tokenizer."""
    match record:
        case LengthRecord():
            return _lengths(record)
        case FertilityRecord():
            counts = zip(record.fertilities, record.log_probabilities, strict=True)
            return FertilitiesReply(
                kind="fertilities",
                fertilities=[
                    FertilityReply(count=count, log_probability=_finite(value))
                    for count, value in counts
                ],
            )
        case AlignmentRecord():
            return _alignment(record, tokenizer)
        case GraphRecord():
            return _graph(record, tokenizer)
        case DraftRecord():
            return _drafts(record, tokenizer)


def _finite(value: float) -> float:
    return max(-1e9, round(value, 6))


def _symbol(tokenizer: Tokenizer, token: int, value: float) -> SymbolReply:
    piece = "" if token == PAD else name_token(tokenizer, token)
    return SymbolReply(token=token, piece=piece, log_probability=_finite(value))


def _symbols(
    tokenizer: Tokenizer, tokens: Sequence[int], values: Sequence[float]
) -> list[SymbolReply]:
    return [_symbol(tokenizer, *one) for one in zip(tokens, values, strict=True)]


def _lengths(record: LengthRecord) -> LengthsReply:
    columns = zip(record.lengths, record.log_probabilities, record.scores, strict=True)
    return LengthsReply(
        kind="lengths",
        chosen=record.chosen,
        lengths=[
            LengthReply(length=length, log_probability=_finite(value), score=_finite(score))
            for length, value, score in columns
        ],
    )


def _alignment(record: AlignmentRecord, tokenizer: Tokenizer) -> AlignmentReply:
    columns = zip(
        record.tokens,
        record.log_probabilities,
        record.chosen,
        record.chosen_log_probabilities,
        written_tokens(record.chosen),
        strict=True,
    )
    return AlignmentReply(
        kind="alignment",
        num_positions=record.num_positions,
        positions=[
            PositionReply(
                best=_symbols(tokenizer, tokens, values),
                chosen=_symbol(tokenizer, chosen, value),
                written=written,
            )
            for tokens, values, chosen, value, written in columns
        ],
    )


def written_tokens(alignment: Sequence[int]) -> list[int | None]:
    """For each position the number of the token that it writes or is merged into; None: a blank."""
    found: list[int | None] = []
    number = 0
    for symbol, run in groupby(alignment):
        count = len(list(run))
        found += [None if symbol == PAD else number] * count
        number += symbol != PAD
    return found


def _graph(record: GraphRecord, tokenizer: Tokenizer) -> GraphReply:
    columns = zip(
        record.tokens,
        record.log_probabilities,
        record.links,
        record.link_log_probabilities,
        strict=True,
    )
    return GraphReply(
        kind="graph",
        num_vertices=record.num_vertices,
        path=list(record.path),
        vertices=[
            VertexReply(
                best=_symbols(tokenizer, tokens, values),
                links=[
                    LinkReply(vertex=vertex, log_probability=_finite(value))
                    for vertex, value in zip(links, link_values, strict=True)
                ],
            )
            for tokens, values, links, link_values in columns
        ],
    )


def _drafts(record: DraftRecord, tokenizer: Tokenizer) -> DraftsReply:
    return DraftsReply(
        kind="drafts",
        rounds=[
            DraftRoundReply(
                draft=_symbols(tokenizer, one.draft, one.log_probabilities),
                num_accepted=one.num_accepted,
                own=None
                if one.own is None or one.own_log_probability is None
                else _symbol(tokenizer, one.own, one.own_log_probability),
            )
            for one in record.rounds
        ],
    )
