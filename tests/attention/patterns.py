"""Who may look at whom, written out with loops over one sentence: slow, dense, and plain to read."""

import torch
from jaxtyping import Bool
from torch import Tensor

from headwise.attention.bigbird import BigBirdAttention

Table = Bool[Tensor, "query key"]


def window_table(length: int, left: int, right: int) -> Table:
    return torch.tensor([[i - left <= j <= i + right for j in range(length)] for i in range(length)])


def longformer_table(length: int, reach: int, *, num_global: int, dilation: int = 1) -> Table:
    def may_look(i: int, j: int) -> bool:
        near = abs(i - j) <= reach * dilation and (i - j) % dilation == 0
        return near or i < num_global or j < num_global

    return torch.tensor([[may_look(i, j) for j in range(length)] for i in range(length)])


def bigbird_table(length: int, kernel: BigBirdAttention) -> Table:
    num_blocks = -(-length // kernel.block)
    first, last = -(-kernel.num_global_blocks // 2), kernel.num_global_blocks // 2
    ends = {*range(first), *range(num_blocks - last, num_blocks)}
    blocks = torch.arange(num_blocks)
    chance = kernel.random_blocks(blocks, torch.full_like(blocks, num_blocks)).tolist()

    def may_look(b: int, c: int) -> bool:
        return abs(b - c) <= kernel.num_window_blocks // 2 or b in ends or c in ends or c in chance[b]

    table = torch.tensor([[may_look(b, c) for c in range(num_blocks)] for b in range(num_blocks)])
    return table.repeat_interleave(kernel.block, 0).repeat_interleave(kernel.block, 1)[:length, :length]
