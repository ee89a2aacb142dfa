"""GPU kernels for the softmax over the vocabulary, one row of logits for each position
(training/parallel/token_scores.py).

In torch the logits of a position are converted to fp32 and then read and written about ten times:
for the maximum, the difference, the exponential, the sum, the gradient. Here one program reads a
row once for its normalizer, and once more to put the gradient in its place:

    _normalize    log Σ_w exp z_w, and the most probable word
    _slopes       d loss / d z_w = Σ_{k: c_k = w} g_k - softmax(z)_w Σ_k g_k

Sums are in fp32, whatever the type of the logits.

Tested against: token_scores.py in torch, in Triton's interpreter.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

WORDS = 1024
"""Words that a program reads at a time."""
MAX_CANDIDATES = 128
"""A program compares the candidates of a position with one another."""


@triton.jit
def _normalize(logit_at, normalizer_at, token_at, vocab, stride, WORDS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logit_at += row * stride
    nothing = float("-inf")
    top = tl.full((), nothing, tl.float32)
    total = tl.zeros((), tl.float32)
    token = tl.zeros((), tl.int32)
    for first in range(0, vocab, WORDS):
        word = first + tl.arange(0, WORDS)
        logit = tl.load(logit_at + word, mask=word < vocab, other=nothing).to(tl.float32)
        value, place = tl.max(logit, 0, return_indices=True)
        token = tl.where(value > top, first + place, token)
        new = tl.maximum(top, value)
        safe = tl.where(new > nothing, new, 0.0)
        total = total * tl.exp(top - safe) + tl.sum(tl.exp(logit - safe), 0)
        top = new
    tl.store(normalizer_at + row, top + tl.log(total))
    tl.store(token_at + row, token.to(tl.int64))


@triton.jit
def _slopes(
    logit_at, normalizer_at, candidate_at, grad_at, vocab, stride, count, WORDS: tl.constexpr,
    COUNT: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    logit_at += row * stride
    normalizer = tl.load(normalizer_at + row)
    index = tl.arange(0, COUNT)
    real = index < count
    candidate = tl.load(candidate_at + row * count + index, mask=real, other=-1)
    grad = tl.load(grad_at + row * count + index, mask=real, other=0.0).to(tl.float32)
    total = tl.sum(grad, 0)
    # A word that is a candidate twice gets the sum of both gradients.
    same = candidate[:, None] == candidate[None, :]
    added = tl.sum(tl.where(same, grad[None, :], 0.0), 1)
    logit = tl.load(logit_at + candidate, mask=real, other=0.0).to(tl.float32)
    chosen = added - tl.exp(logit - normalizer) * total
    tl.debug_barrier()  # candidates are read by all threads before the row is written
    for first in range(0, vocab, WORDS):
        word = first + tl.arange(0, WORDS)
        each = tl.load(logit_at + word, mask=word < vocab, other=0.0).to(tl.float32)
        slope = -tl.exp(each - normalizer) * total
        tl.store(logit_at + word, slope.to(logit_at.dtype.element_ty), mask=word < vocab)
    tl.debug_barrier()
    tl.store(logit_at + candidate, chosen.to(logit_at.dtype.element_ty), mask=real)


def normalize(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The normalizer of each row, in fp32, and its most probable word (the first of equals)."""
    normalizers = torch.empty(len(logits), 1, dtype=torch.float32, device=logits.device)
    tokens = torch.empty(len(logits), dtype=torch.int64, device=logits.device)
    _normalize[(len(logits),)](
        logits, normalizers, tokens, logits.shape[1], logits.stride(0), WORDS=WORDS, num_warps=4
    )
    return normalizers, tokens


def put_slopes(logits: Tensor, normalizers: Tensor, candidates: Tensor, grads: Tensor) -> None:
    """The gradient of the logits in their place, from that of the candidates' scores."""
    count = candidates.shape[1]
    _slopes[(len(logits),)](
        logits, normalizers.contiguous(), candidates.contiguous(), grads.contiguous(),
        logits.shape[1], logits.stride(0), count, WORDS=WORDS,
        COUNT=triton.next_power_of_2(count), num_warps=4,
    )  # fmt: skip
