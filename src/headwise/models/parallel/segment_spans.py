"""Where the sentences of a packed row begin, how long they are, and how two rows correspond.

    segment   1 1 1 2 2 0        starts  1 → 0, 2 → 3        lengths  1 → 3, 2 → 2

A parallel translator needs the length of each sentence in training, and the source token that
belongs to each position of the target. All of it is computed with static shapes, so that a compiled
step needs no other graph for another batch.

Tested against: sentences one by one, in rows of other sentences and padding.
"""

import torch
from jaxtyping import Int
from torch import Tensor


def segment_lengths(segment: Int[Tensor, "row time"], count: int) -> Int[Tensor, "row segment"]:
    """Tokens of the segments 0 (padding) to `count` of each row."""
    lengths = segment.new_zeros(segment.shape[0], count + 1)
    return lengths.scatter_add(1, segment, torch.ones_like(segment))


def lengths_beside(
    segment: Int[Tensor, "row time"], other: Int[Tensor, "row other"]
) -> Int[Tensor, "row time"]:
    """At each token the length of the segment with the same number in the other row."""
    count = max(segment.shape[1], other.shape[1])
    return segment_lengths(other, count).gather(1, segment)


def segment_starts(
    segment: Int[Tensor, "row time"], other: Int[Tensor, "row other"]
) -> Int[Tensor, "row time"]:
    """At each token the index at which the segment of the same number begins in the other row.

    Segments stand in order, and padding stands at the end of a row.
    """
    count = max(segment.shape[1], other.shape[1])
    lengths = segment_lengths(other, count)
    lengths[:, 0] = 0
    return (lengths.cumsum(1) - lengths).gather(1, segment)


def copied_index(
    target_segment: Int[Tensor, "row target"],
    target_position: Int[Tensor, "row target"],
    source_segment: Int[Tensor, "row source"],
) -> Int[Tensor, "row target"]:
    """For each target position t of T the index in the source row of token round(t (S-1) / (T-1)).

    In padding the index is 0.
    """
    num_source = lengths_beside(target_segment, source_segment)
    num_target = lengths_beside(target_segment, target_segment)
    gaps = (num_target - 1).clamp(min=1)
    # Round half up, in integers: the result is the same on every device.
    offset = (2 * target_position * (num_source - 1).clamp(min=0) + gaps) // (2 * gaps)
    index = segment_starts(target_segment, source_segment) + offset
    return torch.where(target_segment > 0, index, 0).clamp(max=source_segment.shape[1] - 1)


def upsample(
    segment: Int[Tensor, "row source"], position: Int[Tensor, "row source"], *, factor: int
) -> tuple[Int[Tensor, "row target"], Int[Tensor, "row target"]]:
    """Segments and positions of rows that have `factor` positions for each source token."""
    offset = torch.arange(factor, device=position.device)
    positions = position[..., None] * factor + offset
    return segment.repeat_interleave(factor, dim=1), positions.flatten(1)
