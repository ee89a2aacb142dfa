"""Draws a token for each row from its logits, in a few passes over them and without a question to
the device.

    weights     w = exp((logit - greatest) / temperature)      banned tokens: 0
    threshold   u · Σ w                                        u in [0, 1), one number a row
    token       the first whose running sum of w passes the threshold

The running sum has two levels: over the sums of blocks of 64 tokens, and then inside the block in
which the threshold is passed. So only the sums, a 64th of the table, are added up one after the
other. Sums are of fp32; the token may differ from that of exact sums where the threshold lies
within rounding of a border, and so may those of a CPU and a GPU.

A negative u takes the most probable token instead, and a forced token is taken whatever u is.
Tested by frequencies, against sums in float64; gpu/token_drawing.py is tested against this file.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.gpu import runs_kernels

BLOCK = 64
GREEDY = -1.0
"""Instead of a number in [0, 1): the most probable token."""
FREE = -1
"""Instead of a forced token: none."""


def draw_rows(
    logits: Float[Tensor, "row vocab"],
    banned: Bool[Tensor, "vocab"],
    uniform: Float[Tensor, "row"],
    forced: Int[Tensor, "row"],
    *,
    temperature: float,
    renormalizes: bool,
) -> tuple[Float[Tensor, "row"], Int[Tensor, "row"]]:
    """Log-probability (at temperature 1) and token of each row.

    `renormalizes`: the log-probability is that among the tokens that are not banned.
    """
    if runs_kernels(logits):
        from headwise.gpu.token_drawing import draw

        return draw(
            logits, banned, uniform, forced, temperature=temperature, renormalizes=renormalizes
        )
    exact = logits if logits.dtype == torch.float64 else logits.float()
    counted = exact.masked_fill(banned, -torch.inf) if renormalizes else exact
    scores = counted.log_softmax(-1)
    tokens = draw_or_take_best(scores.masked_fill(banned, -torch.inf), uniform, temperature)
    tokens = torch.where(forced == FREE, tokens, forced)
    return scores.gather(1, tokens[:, None])[:, 0], tokens


def draw_or_take_best(
    scores: Float[Tensor, "row vocab"], uniform: Float[Tensor, "row"], temperature: float
) -> Int[Tensor, "row"]:
    """The token drawn, or the most probable one where the number is negative."""
    drawn = draw_by_blocks(scores, uniform.clamp(min=0), temperature)
    return torch.where(uniform < 0, scores.argmax(-1), drawn)


def draw_by_blocks(
    scores: Float[Tensor, "row vocab"], uniform: Float[Tensor, "row"], temperature: float
) -> Int[Tensor, "row"]:
    """The token at which the running sum passes `uniform` of the whole."""
    # The greatest score is subtracted first, so that a tiny temperature does not overflow.
    weights = ((scores - scores.amax(-1, keepdim=True)) / temperature).exp()
    blocks = F.pad(weights, (0, -weights.shape[1] % BLOCK)).unflatten(1, (-1, BLOCK))
    sums = blocks.sum(-1)
    ends = sums.cumsum(-1)
    threshold = uniform[:, None].to(ends.dtype) * ends[:, -1:]
    block = _pass(ends, threshold, sums)
    before = F.pad(ends, (1, 0)).gather(1, block)
    inside = blocks.gather(1, block[..., None].expand(-1, -1, BLOCK))[:, 0]
    return (block * BLOCK + _pass(before + inside.cumsum(-1), threshold, inside))[:, 0]


def _pass(
    running: Float[Tensor, "row item"],
    threshold: Float[Tensor, "row 1"],
    weights: Float[Tensor, "row item"],
) -> Int[Tensor, "row 1"]:
    """The first item whose running sum is greater than the threshold.

    Rounding may carry the threshold to the end: then the last item of any weight.
    """
    found = torch.searchsorted(running, threshold, right=True)
    items = torch.arange(weights.shape[1], device=weights.device)
    return torch.minimum(found, (items * (weights > 0)).amax(-1, keepdim=True))
