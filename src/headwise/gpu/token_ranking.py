"""A GPU kernel that finds the best tokens of every row and their log-probabilities.

One Triton program holds the logits of a row and computes their log-sum-exp and the maximum of every
block of 64. Then it takes the greatest, the next, and so on; only the block of the token just taken
must be searched again. The [row, vocab] table of log-probabilities is never written; in torch it is
written once and read three times.

Tested against: decoding/search/candidates.py.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from headwise.gpu.early_launch import early_start, wait_for_last_kernel

MAX_VOCAB, MAX_COUNT = 32_768, 64
"""A program holds a whole row in its registers, and takes one token after the other."""


@triton.jit
def _rank(
    logit_at, banned_at, value_at, token_at, vocab, stride,
    COUNT: tl.constexpr, BLOCKS: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    block, inside = tl.arange(0, BLOCKS), tl.arange(0, BLOCK)
    token = block[:, None] * BLOCK + inside[None, :]
    nothing = float("-inf")
    wait_for_last_kernel(EARLY)
    banned = tl.load(banned_at + token, mask=token < vocab, other=1)
    own = logit_at + row.to(tl.int64) * stride
    logit = tl.load(own + token, mask=token < vocab, other=nothing).to(tl.float32)
    top = tl.max(tl.max(logit, 1), 0)
    normalizer = top + tl.log(tl.sum(tl.sum(tl.exp(logit - top), 1), 0))
    highest = tl.max(tl.where(banned != 0, nothing, logit), 1)
    # Position and value of the last token taken from each block: equal values are taken in the
    # order of their tokens.
    last_value = tl.full((BLOCKS,), float("inf"), tl.float32)
    last_place = tl.full((BLOCKS,), -1, tl.int32)
    for rank in range(COUNT):
        best, winner = tl.max(highest, 0, return_indices=True)
        chosen = block == winner
        before = tl.sum(tl.where(chosen, last_place, 0), 0)
        before = tl.where(tl.max(tl.where(chosen, last_value, nothing), 0) == best, before, -1)
        here = winner * BLOCK + inside
        again = tl.load(own + here, mask=here < vocab, other=nothing).to(tl.float32)
        again = tl.where(tl.load(banned_at + here, mask=here < vocab, other=1) != 0, nothing, again)
        place = tl.min(tl.where((again == best) & (inside > before), inside, BLOCK - 1), 0)
        tl.store(value_at + row * COUNT + rank, best - normalizer)
        tl.store(
            token_at + row * COUNT + rank,
            tl.minimum(winner * BLOCK + place, vocab - 1).to(tl.int64),
        )
        left = (again < best) | ((again == best) & (inside > place))
        highest = tl.where(chosen, tl.max(tl.where(left, again, nothing), 0), highest)
        last_value = tl.where(chosen, best, last_value)
        last_place = tl.where(chosen, place, last_place)


def rank(logits: Tensor, banned: Tensor, *, count: int) -> tuple[Tensor, Tensor]:
    """See `decoding.candidates.rank_tokens`."""
    num_rows, vocab = logits.shape
    block = 64
    blocks = triton.next_power_of_2(triton.cdiv(vocab, block))
    values = torch.empty((num_rows, count), dtype=torch.float32, device=logits.device)
    tokens = torch.empty((num_rows, count), dtype=torch.long, device=logits.device)
    _rank[(num_rows,)](
        logits, banned.view(torch.uint8), values, tokens, vocab, logits.stride(0),
        COUNT=count, BLOCKS=blocks, BLOCK=block, num_warps=min(16, max(1, blocks * block // 2048)),
        **early_start(logits),
    )  # fmt: skip
    return values, tokens
