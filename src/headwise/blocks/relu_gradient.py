"""What goes back through a relu, and its sum over tokens (the gradient of the bias), in one pass over memory (Triton).

    d = dy where y > 0, else 0        db = Σ over tokens of d

A compiler makes two kernels of it, the second of which reads all of d again: the hidden layer is the widest tensor there is. Here
a program takes a strip of columns and a run of tokens, writes d and keeps the sum; the few sums per column are added at the end.

Tested against: the two operations written out, in Triton's interpreter on a CPU.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import triton_op, wrap_triton

STRIP = tl.constexpr(256)
BLOCK = tl.constexpr(16)
RUN = tl.constexpr(256)


@triton.jit
def _pass_back(y, slope, result, sums, num_tokens, width: tl.constexpr):  # type: ignore[no-untyped-def]
    column = tl.program_id(0) * STRIP + tl.arange(0, STRIP)[None, :]
    begin = tl.program_id(1) * RUN
    total = tl.zeros((STRIP,), dtype=tl.float32)
    for first in range(0, RUN, BLOCK):
        token = begin + first + tl.arange(0, BLOCK)[:, None]
        inside = (token < num_tokens) & (column < width)
        place = token.to(tl.int64) * width + column
        passed = tl.load(y + place, mask=inside, other=0.0) > 0
        values = tl.where(passed, tl.load(slope + place, mask=inside, other=0.0), 0.0)
        tl.store(result + place, values, mask=inside)
        total += tl.sum(values.to(tl.float32), 0)
    column = tl.program_id(0) * STRIP + tl.arange(0, STRIP)
    tl.store(sums + tl.program_id(1) * width + column, total, mask=column < width)


@triton_op("headwise::pass_relu_back", mutates_args=())
def pass_relu_back(slope: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """d, and its sums over runs of tokens, [run, hidden] in fp32. Both inputs are contiguous [token, hidden]."""
    num_tokens, width = y.shape
    grid = (triton.cdiv(width, STRIP.value), triton.cdiv(num_tokens, RUN.value))
    result, sums = torch.empty_like(y), y.new_empty((grid[1], width), dtype=torch.float32)
    wrap_triton(_pass_back)[grid](y, slope, result, sums, num_tokens, width=width, num_warps=4)
    return result, sums
