"""Divides the pairs of a batch into groups of similar size, so that less is computed for padding.

A table of links has vertices² cells. Unpacked together, the pairs of a batch all get the table of
the longest: with lengths from 3 to 45 and eight vertices per source token, most cells are padding,
and the heads of the links need several such tables. In a group no pair is smaller than the largest
divided by `ratio`, so at most ratio² times the necessary cells are computed:

    group of a pair = ⌊log(vertices) / log(ratio)⌋

Tested against: every pair is in one group, and the bound on the cells.
"""

import math

import torch
from jaxtyping import Int
from torch import Tensor


def length_groups(
    vertex_count: Int[Tensor, " pair"], *, ratio: float = 1.5
) -> list[Int[Tensor, " member"]]:
    """The pairs of each group, the group of the largest first. The host waits for the counts."""
    number = (vertex_count.clamp_min(1).double().log() / math.log(ratio) + 1e-9).floor()
    order = number.argsort(descending=True, stable=True)
    sizes = torch.unique_consecutive(number[order], return_counts=True)[1]
    return list(order.split(sizes.tolist()))
