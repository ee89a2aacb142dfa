"""GPU kernels for the recursion of CTC over positions (training/parallel/ctc.py).

In torch every position costs eight launches over all pairs, padding included; a batch with one long
sentence has hundreds of positions. Here one program walks through the positions of one pair, as
many as that pair has. Each program writes the states after a position to the table, where the next
step reads those of the same prefix and of the one before it:

    _walk     the states before the first position and after each, with ⊕ = log-add-exp or maximum
    _trace    from the last state back along the pointers

Tested against: `run_recursion` and `trace_back` in torch, in Triton's interpreter.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _add_up(a, b, BEST: tl.constexpr):
    """a ⊕ b; both may be -inf."""
    high = tl.maximum(a, b)
    if BEST:
        return high
    safe = tl.where(high > float("-inf"), high, 0.0)
    both = tl.exp(a - safe) + tl.exp(b - safe)
    return tl.where(high > float("-inf"), safe + tl.log(tl.where(both > 0, both, 1.0)), high)


@triton.jit
def _walk(
    symbol_at, table_at, repeat_at, count_at, num_pairs, width, BEST: tl.constexpr,
    WIDTH: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0).to(tl.int64)
    nothing = float("-inf")
    prefix = tl.arange(0, WIDTH)
    real, longer = prefix < width, (prefix > 0) & (prefix < width)
    repeats = tl.load(repeat_at + pair * (width - 1) + prefix - 1, mask=longer, other=0) != 0
    state_size = num_pairs.to(tl.int64) * width
    symbol_at += pair * width
    table_at += pair * width
    for _ in range(tl.load(count_at + pair)):
        blank = tl.load(table_at + prefix, mask=real, other=nothing)
        label = tl.load(table_at + state_size + prefix, mask=real, other=nothing)
        blank_before = tl.load(table_at + prefix - 1, mask=longer, other=nothing)
        label_before = tl.load(table_at + state_size + prefix - 1, mask=longer, other=nothing)
        entering = tl.where(repeats, blank_before, _add_up(blank_before, label_before, BEST))
        entering = tl.where(longer, entering, nothing)
        new_blank = _add_up(blank, label, BEST)
        new_label = _add_up(label, entering, BEST)
        new_blank += tl.load(symbol_at + prefix, mask=real, other=nothing)
        new_label += tl.load(symbol_at + state_size + prefix, mask=real, other=nothing)
        table_at += 2 * state_size
        symbol_at += 2 * state_size
        tl.store(table_at + prefix, new_blank, mask=real)
        tl.store(table_at + state_size + prefix, new_label, mask=real)
        tl.debug_barrier()  # one thread's states are read by the next thread


@triton.jit
def _trace(pointer_at, start_at, count_at, column_at, num_pairs, num_positions, width):
    pair = tl.program_id(0).to(tl.int64)
    count = tl.load(count_at + pair)
    state = tl.load(start_at + pair)
    for step in range(count):
        position = (count - 1 - step).to(tl.int64)
        tl.store(column_at + pair * num_positions + position, tl.maximum(state - width, 0))
        state = tl.load(pointer_at + (position * num_pairs + pair) * 2 * width + state)


def run_recursion(
    symbols: Tensor, repeats: Tensor, position_count: Tensor, *, best: bool
) -> Tensor:
    """The table of `training.parallel.ctc.run_recursion`; -inf after a pair's last position."""
    num_positions, _, num_pairs, width = symbols.shape
    table = symbols.new_full((1 + num_positions, 2, num_pairs, width), -torch.inf)
    table[0, 0, :, 0] = 0
    _walk[(num_pairs,)](
        symbols.contiguous(), table, repeats.contiguous().view(torch.uint8),
        position_count.contiguous(), num_pairs, width, BEST=best,
        WIDTH=triton.next_power_of_2(width), num_warps=1 if width <= 64 else 4,
    )  # fmt: skip
    return table


def trace_back(pointers: Tensor, start: Tensor, position_count: Tensor) -> Tensor:
    """The columns of `training.parallel.ctc.trace_back`, [pair, position]."""
    num_positions, num_pairs, num_states = pointers.shape
    columns = pointers.new_zeros(num_pairs, num_positions)
    _trace[(num_pairs,)](
        pointers, start.contiguous(), position_count.contiguous(), columns, num_pairs,
        num_positions, num_states // 2, num_warps=1,
    )  # fmt: skip
    return columns
