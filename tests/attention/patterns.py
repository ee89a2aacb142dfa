"""Who may look at whom, written out with loops over one sentence: slow, dense, and plain to read.

Places are counted from the beginning of the sentence: padding before it stands at −1, −2 …, padding
behind it at its length and on.
"""

import torch
from jaxtyping import Bool
from torch import Tensor

from headwise.attention.kernels.bigbird import BigBirdAttention

Table = Bool[Tensor, "query key"]


def window_table(length: int, left: int, right: int, *, before: int = 0, behind: int = 0) -> Table:
    places = range(-before, length + behind)
    return torch.tensor([[i - left <= j <= i + right for j in places] for i in places])


def longformer_table(
    length: int, reach: int, *, num_global: int, dilation: int = 1, before: int = 0, behind: int = 0
) -> Table:
    def may_look(i: int, j: int) -> bool:
        near = abs(i - j) <= reach * dilation and (i - j) % dilation == 0
        return near or 0 <= i < num_global or 0 <= j < num_global

    places = range(-before, length + behind)
    return torch.tensor([[may_look(i, j) for j in places] for i in places])


def bigbird_table(
    length: int, kernel: BigBirdAttention, *, before: int = 0, behind: int = 0
) -> Table:
    num_blocks = -(-length // kernel.block)
    first, last = -(-kernel.num_global_blocks // 2), kernel.num_global_blocks // 2
    ends = {*range(first), *range(num_blocks - last, num_blocks)}
    blocks = torch.arange(num_blocks)
    chance = kernel.random_blocks(blocks, torch.full_like(blocks, num_blocks)).tolist()

    def is_global(i: int) -> bool:
        return 0 <= i < length and i // kernel.block in ends

    def may_look(i: int, j: int) -> bool:
        b, c = i // kernel.block, j // kernel.block
        near, by_chance = (
            abs(b - c) <= kernel.num_window_blocks // 2,
            0 <= i < length and c in chance[b],
        )
        return near or by_chance or is_global(i) or is_global(j)

    places = range(-before, length + behind)
    return torch.tensor([[may_look(i, j) for j in places] for i in places])
