"""Holds the attention maps of one translation, and reads from them which piece follows which.

Tested with maps by hand, and by the alignment error on the pocket corpus.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_SHALLOW_LAYERS = 3


@dataclass(frozen=True)
class AttentionTrace:
    """All attention maps of one translation, with the pieces their rows and columns stand for."""

    source_pieces: tuple[str, ...]
    target_input_pieces: tuple[str, ...]
    target_pieces: tuple[str, ...]
    maps: Mapping[str, NDArray[np.float32]]
    """`encoder.N.self`, `decoder.N.self`, `decoder.N.cross` → [head, query, key]."""


def align_pieces(trace: AttentionTrace) -> tuple[tuple[int, int], ...]:
    """For each target piece the source piece of greatest attention, averaged over heads.

    Shallow decoders align in their last layer (on the pocket corpus: 0.13 errors against 0.21 in
    the first of two); in deep ones the last layer already mixes, and the last but one is read.
    """
    crosses = [weights for name, weights in trace.maps.items() if name.endswith(".cross")]
    layer = -1 if len(crosses) <= MAX_SHALLOW_LAYERS else -2
    num_source, num_target = len(trace.source_pieces) - 1, len(trace.target_pieces) - 1
    best = crosses[layer].mean(axis=0)[:num_target, :num_source].argmax(axis=1)
    return tuple((int(source), target) for target, source in enumerate(best))
