"""What a decoder that writes several tokens at once considered: the material of pictures.

    lengths       the lengths that were tried, and the one taken    one_pass, mask_predict
    fertilities   how often each source token was copied            one_pass, noisy_parallel
    alignment     the symbols of each position, and the alignment   models with CTC
    graph         tokens and links of the vertices, and the path    models with a graph
    drafts        what was drafted in each round, and accepted      drafted

A record is kept of the best hypothesis, and only on request (`GenerationSettings.keeps_record`). It
holds the few most probable tokens or links of each place, and at most `MOST_PLACES` places.
Tested: each decoding's record rebuilds its best hypothesis, and tracing changes no result.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

NUM_SHOWN = 5
"""Tokens of a position or vertex, and links of a vertex, that a record holds."""
MOST_PLACES = 1024
"""Positions or vertices that a record holds."""

Numbers = tuple[float, ...]
Tokens = tuple[int, ...]


@dataclass(frozen=True)
class LengthRecord:
    """The lengths of one sentence that were tried, the most probable one first."""

    lengths: tuple[int, ...]
    """Tokens, the end of the sentence included."""
    log_probabilities: Numbers
    """Of each length."""
    scores: Numbers
    """The mean log-probability per token of what was written with it."""
    chosen: int
    """The place in these lists of the one that was taken."""


@dataclass(frozen=True)
class FertilityRecord:
    """How often each source token, the end included, was copied for the decoder to read."""

    fertilities: tuple[int, ...]
    log_probabilities: Numbers
    """Of each fertility, before the limits of the length."""


@dataclass(frozen=True)
class AlignmentRecord:
    """What the positions of a decoder with CTC offer; PAD is the blank."""

    tokens: tuple[Tokens, ...]
    """The most probable symbols of each position, best first."""
    log_probabilities: tuple[Numbers, ...]
    chosen: Tokens
    """The symbol of each position in the alignment that collapses to the hypothesis."""
    chosen_log_probabilities: Numbers
    num_positions: int
    """Of the sentence; more than are told if it is very long."""


@dataclass(frozen=True)
class GraphRecord:
    """The vertices of a sentence, and the path along which it was written."""

    tokens: tuple[Tokens, ...]
    """The most probable tokens of each vertex, best first."""
    log_probabilities: tuple[Numbers, ...]
    links: tuple[tuple[int, ...], ...]
    """The vertices to which the most probable links of each vertex lead."""
    link_log_probabilities: tuple[Numbers, ...]
    path: tuple[int, ...]
    """From vertex 0, which writes `<s>`, to the last one, which writes `</s>`."""
    num_vertices: int
    """Of the sentence; more than are told if it is very long."""


@dataclass(frozen=True)
class DraftRound:
    """One pass of the verifier over a draft."""

    draft: Tokens
    log_probabilities: Numbers
    """Of the drafted tokens, by the verifier."""
    num_accepted: int
    own: int | None
    """The verifier's token after the accepted ones; None if the sentence ended before it."""
    own_log_probability: float | None


@dataclass(frozen=True)
class DraftRecord:
    """All rounds: accepted drafts and the verifier's own tokens are the hypothesis and its end."""

    rounds: tuple[DraftRound, ...]


Record = LengthRecord | FertilityRecord | AlignmentRecord | GraphRecord | DraftRecord


def best_choices(
    table: Float[Tensor, "place choice"],
) -> tuple[tuple[tuple[int, ...], ...], tuple[Numbers, ...]]:
    """The most probable choices of each place and their log-probabilities, impossible ones left
    out."""
    best = table[:MOST_PLACES].float().topk(min(NUM_SHOWN, table.shape[1]), dim=1)
    return possible_choices(best.indices, best.values)


def possible_choices(
    chosen: Int[Tensor, "place rank"], values: Float[Tensor, "place rank"]
) -> tuple[tuple[tuple[int, ...], ...], tuple[Numbers, ...]]:
    """Choices of each place that are ranked already, impossible ones left out."""
    rows = [
        [(one, value) for one, value in zip(*row, strict=True) if value > float("-inf")]
        for row in zip(chosen.tolist(), values.tolist(), strict=True)
    ]
    return (
        tuple(tuple(one for one, _ in row) for row in rows),
        tuple(tuple(value for _, value in row) for row in rows),
    )
