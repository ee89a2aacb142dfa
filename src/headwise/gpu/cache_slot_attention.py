"""A GPU kernel for attention of one decoding step, over a cache that is never reordered.

attention/cache_slot_attention.py explains the table of slots, which says where the cache holds each
position of a row. One Triton program handles one head of one row. It goes over the positions of the
row in blocks with a running maximum and sum (Dao et al. 2022), reading position t from the slot in
the table. If a new key and value are given, it also writes them into the row's own slot at the next
position. The number of positions is read from device memory, so the launch is the same at every
step and can be recorded, yet no step reads more than has been written. A second kernel handles all
rows of a sentence at once, which share the keys and values of the source.

Tested against: attention/cache_slot_attention.py.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from headwise.gpu.early_launch import early_start, wait_for_last_kernel


@triton.jit
def _attend(
    q_at, key_at, value_at, new_key_at, new_value_at, table_at, length_at, out_at,
    scale, q_stride, new_stride, time_stride, slot_stride, table_time, table_row, length_stride,
    HEAD_DIM: tl.constexpr, DIMS: tl.constexpr, TIMES: tl.constexpr, APPENDS: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    head, row = tl.program_id(0), tl.program_id(1)
    inside = tl.arange(0, DIMS)
    real = inside < HEAD_DIM
    column = head * HEAD_DIM + inside
    wait_for_last_kernel(EARLY)
    q = tl.load(q_at + row * q_stride + column, mask=real, other=0.0).to(tl.float32) * scale
    length = tl.load(length_at + row * length_stride).to(tl.int32)
    if APPENDS:
        new_key = tl.load(new_key_at + row * new_stride + column, mask=real, other=0.0)
        new_value = tl.load(new_value_at + row * new_stride + column, mask=real, other=0.0)
        own = length.to(tl.int64) * time_stride + row.to(tl.int64) * slot_stride + column
        tl.store(key_at + own, new_key, mask=real)
        tl.store(value_at + own, new_value, mask=real)
        top = tl.sum(q * new_key.to(tl.float32), 0)
        total = top * 0.0 + 1.0
        mean = new_value.to(tl.float32)
    else:
        top = tl.sum(q, 0) * 0.0 + float("-inf")
        total = tl.sum(q, 0) * 0.0
        mean = q * 0.0
    for start in range(0, length, TIMES):
        time = start + tl.arange(0, TIMES)
        seen = time < length
        slot = tl.load(table_at + time * table_time + row * table_row, mask=seen, other=0)
        place = time.to(tl.int64) * time_stride + slot.to(tl.int64) * slot_stride
        both = seen[:, None] & real[None, :]
        key = tl.load(key_at + place[:, None] + column[None, :], mask=both, other=0.0).to(
            tl.float32
        )
        value = tl.load(value_at + place[:, None] + column[None, :], mask=both, other=0.0).to(
            tl.float32
        )
        score = tl.where(seen, tl.sum(key * q[None, :], 1), float("-inf"))
        highest = tl.maximum(top, tl.max(score, 0))
        weight = tl.exp(score - highest)
        shrink = tl.exp(top - highest)
        total = total * shrink + tl.sum(weight, 0)
        mean = mean * shrink + tl.sum(weight[:, None] * value, 0)
        top = highest
    mean = mean / tl.where(total > 0, total, 1.0)
    out = out_at + (row * tl.num_programs(0) + head) * HEAD_DIM + inside
    tl.store(out, mean.to(out_at.dtype.element_ty), mask=real)


@triton.jit
def _attend_shared(
    q_at, key_at, value_at, sentence_at, length_at, out_at, scale, q_stride, sentence_stride,
    time_stride,
    HEAD_DIM: tl.constexpr, DIMS: tl.constexpr, TIMES: tl.constexpr, WIDTH: tl.constexpr,
    ROWS: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    head, group = tl.program_id(0), tl.program_id(1)
    inside, row = tl.arange(0, DIMS), tl.arange(0, ROWS)
    real = inside < HEAD_DIM
    column = head * HEAD_DIM + inside
    mine = (row < WIDTH)[:, None] & real[None, :]
    wait_for_last_kernel(EARLY)
    q = tl.load(
        q_at + (group * WIDTH + row)[:, None] * q_stride + column[None, :], mask=mine, other=0.0
    )
    length = tl.load(length_at + group).to(tl.int32)
    own = tl.load(sentence_at + group).to(tl.int64) * sentence_stride
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    mean = tl.zeros((ROWS, DIMS), tl.float32)
    for start in range(0, length, TIMES):
        time = start + tl.arange(0, TIMES)
        both = (time < length)[:, None] & real[None, :]
        place = own + time[:, None] * time_stride + column[None, :]
        key = tl.load(key_at + place, mask=both, other=0.0)
        value = tl.load(value_at + place, mask=both, other=0.0)
        score = tl.dot(q, tl.trans(key), input_precision="ieee") * scale
        score = tl.where((time < length)[None, :], score, float("-inf"))
        highest = tl.maximum(top, tl.max(score, 1))
        weight = tl.exp(score - highest[:, None])
        shrink = tl.exp(top - highest)
        total = total * shrink + tl.sum(weight, 1)
        mean = mean * shrink[:, None] + tl.dot(
            weight.to(value.dtype), value, input_precision="ieee"
        )
        top = highest
    mean = mean / tl.where(total > 0, total, 1.0)[:, None]
    out = (
        out_at
        + ((group * WIDTH + row)[:, None] * tl.num_programs(0) + head) * HEAD_DIM
        + inside[None, :]
    )
    tl.store(out, mean.to(out_at.dtype.element_ty), mask=mine)


MANY_ROWS = 1024


def attend(
    q: Tensor,
    new: tuple[Tensor, Tensor] | None,
    keys: Tensor,
    values: Tensor,
    *,
    table: Tensor,
    length: Tensor,
    num_heads: int,
) -> Tensor:
    """See `attention.slot_attention.attend_through_table`; each row may have its own length, and
    the new key and value are optional."""
    num_rows, dim = q.shape
    head_dim = dim // num_heads
    new_key, new_value = (q, q) if new is None else new
    assert keys.stride() == values.stride()
    assert new_key.stride() == new_value.stride()
    out = torch.empty((num_rows, dim), dtype=q.dtype, device=q.device)
    _attend[(num_heads, num_rows)](
                q, keys, values, new_key, new_value, table, length, out,
        head_dim**-0.5, q.stride(0), new_key.stride(0), keys.stride(0), keys.stride(1),
        table.stride(0), table.stride(1),
        length.stride(0),
        HEAD_DIM=head_dim, DIMS=triton.next_power_of_2(head_dim),
        TIMES=32 if num_rows < MANY_ROWS else 16,
        APPENDS=new is not None, num_warps=1, **early_start(q),
    )  # fmt: skip
    return out


def attend_shared(
    q: Tensor, keys: Tensor, values: Tensor, *, sentence: Tensor, length: Tensor, num_heads: int
) -> Tensor:
    """See `attention.slot_attention.attend_to_source`: the rows of a sentence share the keys and
    values that are read."""
    (num_rows, dim), num_sentences = q.shape, len(sentence)
    width, head_dim = num_rows // num_sentences, dim // num_heads
    if width == 1:
        table = sentence.expand(keys.shape[1], -1)
        by_time = keys.transpose(0, 1), values.transpose(0, 1)
        return attend(q, None, *by_time, table=table, length=length, num_heads=num_heads)
    assert keys.stride() == values.stride()
    out = torch.empty((num_rows, dim), dtype=q.dtype, device=q.device)
    _attend_shared[(num_heads, num_sentences)](
                q, keys, values, sentence, length, out,
        head_dim**-0.5, q.stride(0), keys.stride(0), keys.stride(1),
        # Matrix units need at least 16 rows and columns.
        HEAD_DIM=head_dim, DIMS=max(16, triton.next_power_of_2(head_dim)), TIMES=32, WIDTH=width,
        ROWS=max(16, triton.next_power_of_2(width)), num_warps=1, **early_start(q),
    )  # fmt: skip
    return out
