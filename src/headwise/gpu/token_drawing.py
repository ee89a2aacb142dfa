"""A GPU kernel that draws a token for every row and writes its log-probability.

One Triton program handles one row, in chunks of its logits. It goes over them twice: first for the
greatest logit and the sums (a running maximum and sum, Milakov & Gimelshein 2018), then for the
chunk in which the running sum of weights passes the threshold; the token is found inside that
chunk. The second time the row lies in the cache. In torch, the [row, vocab] table of weights is
written and read several times.

Tested against: decoding/search/row_draws.py.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from headwise.gpu.early_launch import early_start, wait_for_last_kernel

CHUNK = 2048


@triton.jit
def _load(own, banned_at, token, vocab):
    """The logits of these tokens, and again with -inf for banned ones."""
    inside = token < vocab
    logit = tl.load(own + token, mask=inside, other=float("-inf")).to(tl.float32)
    banned = tl.load(banned_at + token, mask=inside, other=1)
    return logit, tl.where(banned != 0, float("-inf"), logit)


@triton.jit
def _draw(
    logit_at, banned_at, uniform_at, forced_at, value_at, token_at, vocab, stride, sharpness,
    RENORMALIZES: tl.constexpr, CHUNK: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    inside = tl.arange(0, CHUNK)
    wait_for_last_kernel(EARLY)
    own = logit_at + row.to(tl.int64) * stride
    uniform = tl.load(uniform_at + row)
    forced = tl.load(forced_at + row).to(tl.int32)
    # The tokens that may be drawn: greatest logit, its token, sum of weights. Those that count for
    # the log-probability: greatest logit and sum of exponentials. The first maxima are finite, so
    # that no difference of infinities is taken.
    top, best, weight = uniform * 0.0 - 1e30, forced * 0, uniform * 0.0
    peak, total = top, uniform * 0.0
    for start in range(0, vocab, CHUNK):
        logit, allowed = _load(own, banned_at, start + inside, vocab)
        high, place = tl.max(allowed, 0, return_indices=True)
        best = tl.where(high > top, start + place.to(tl.int32), best)
        higher = tl.maximum(top, high)
        weight = weight * tl.exp((top - higher) * sharpness) + tl.sum(
            tl.exp((allowed - higher) * sharpness), 0
        )
        top = higher
        counted = allowed if RENORMALIZES else logit
        higher = tl.maximum(peak, tl.max(counted, 0))
        total = total * tl.exp(peak - higher) + tl.sum(tl.exp(counted - higher), 0)
        peak = higher
    # The chunk in which the threshold is passed, the sum before it, and for a threshold that
    # rounding carries to the end the last chunk of any weight.
    threshold, before, found = uniform * weight, uniform * 0.0, uniform * 0.0
    chunk, is_found = forced * 0, forced * 0
    for start in range(0, vocab, CHUNK):
        _, allowed = _load(own, banned_at, start + inside, vocab)
        mine = tl.sum(tl.exp((allowed - top) * sharpness), 0)
        enters = (is_found == 0) & (mine > 0)
        chunk = tl.where(enters, start, chunk)
        found = tl.where(enters, before, found)
        before += mine
        is_found = tl.where(before > threshold, 1, is_found)
    _, allowed = _load(own, banned_at, chunk + inside, vocab)
    mine = tl.exp((allowed - top) * sharpness)
    running = found + tl.cumsum(mine, 0)
    passes = tl.min(tl.where((running > threshold) & (mine > 0), inside, CHUNK), 0)
    last = tl.max(tl.where(mine > 0, inside, 0), 0)
    token = (chunk + tl.minimum(passes, last)).to(tl.int32)
    token = tl.where(uniform < 0, best, token)
    token = tl.where(forced >= 0, forced, token)
    # Logits that are no numbers must not lead out of the vocabulary.
    token = tl.minimum(tl.maximum(token, 0), vocab - 1)
    taken = tl.load(own + token).to(tl.float32)
    tl.store(value_at + row, taken - peak - tl.log(total))
    tl.store(token_at + row, token.to(tl.int64))


def draw(
    logits: Tensor,
    banned: Tensor,
    uniform: Tensor,
    forced: Tensor,
    *,
    temperature: float,
    renormalizes: bool,
) -> tuple[Tensor, Tensor]:
    """See `decoding.search.row_draws.draw_rows`."""
    num_rows, vocab = logits.shape
    values = torch.empty(num_rows, dtype=torch.float32, device=logits.device)
    tokens = torch.empty(num_rows, dtype=torch.long, device=logits.device)
    _draw[(num_rows,)](
        logits, banned.view(torch.uint8), uniform, forced, values, tokens, vocab,
        logits.stride(0), 1 / temperature,
        RENORMALIZES=renormalizes, CHUNK=min(CHUNK, triton.next_power_of_2(vocab)), num_warps=4,
        **early_start(logits),
    )  # fmt: skip
    return values, tokens
