"""Writes traces (all that the explorer shows of one sentence) as JSON, for the saved page and for
replies of the server.

Weights are sent as base64 of whole numbers of 8 or 16 bits, in the order [head][query][key], lowest
byte first:

    number = round((2^bits − 1) · (A − low) / scale)      error at most scale / (2^(bits+1) − 2)

low is 0, or the lowest weight of a map with negative weights; low + scale is the largest weight.

Tested against: weights decoded again, also in a real browser.
"""

import base64
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from headwise.explorer.data.attention_maps import AttentionMap, Trace
from headwise.explorer.data.word_grouping import group_pieces, is_mark

Bits = Literal[8, 16]


def pack_trace(trace: Trace) -> dict[str, Any]:
    """A trace with all its maps."""
    return {
        "title": trace.title,
        "source_text": trace.source_text,
        "target_text": trace.target_text,
        "source": pack_side(trace.source_pieces, trace.source_language),
        "target": pack_side(trace.target_pieces, trace.target_language),
        "target_input": pack_side(trace.target_input_pieces, trace.target_language),
        "maps": [pack_map(attention) for attention in trace.maps],
    }


def pack_side(pieces: Sequence[str], language: str) -> dict[str, Any]:
    """Pieces, their words, and which of them are special tokens."""
    words = group_pieces(tuple(pieces))
    return {
        "language": language,
        "pieces": list(pieces),
        "words": list(words.text),
        "word_of_piece": list(words.word_of_piece),
        "marks": [is_mark(piece) for piece in pieces],
    }


def pack_map(
    attention: AttentionMap, *, heads: Sequence[int] | None = None, bits: Bits = 8
) -> dict[str, Any]:
    """One layer; `heads` are the heads to pack, all of them by default."""
    chosen = list(range(len(attention.weights))) if heads is None else list(heads)
    weights = attention.weights[chosen].astype(np.float64)
    low = min(float(weights.min()), 0.0)
    scale = float(weights.max()) - low or 1.0
    numbers = np.rint((weights - low) * ((2**bits - 1) / scale)).astype(
        "<u1" if bits == 8 else "<u2"
    )
    return {
        "name": attention.name,
        "kind": attention.kind,
        "layer": attention.layer,
        "heads": chosen,
        "shape": list(numbers.shape),
        "low": low,
        "scale": scale,
        "bits": bits,
        "weights": base64.b64encode(numbers.tobytes()).decode("ascii"),
    }
