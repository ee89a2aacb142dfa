"""Chooses a few candidate tokens for each position of a parallel decoder, the most probable ones
and the reference, so that a CRF over neighbouring tokens need not compare the whole vocabulary.

A CRF over a vocabulary of V tokens needs V × V operations for each pair of neighbouring positions;
over k candidates it needs k × k. The k best tokens are found chunk by chunk, as the loss is
computed (`training/losses.py`): logits of a chunk, its k best tokens, and the logits are discarded.
The choice has no gradient; the scores of the chosen tokens are computed again, with one.

The reference must be among the candidates, or the probability of the target would not be defined;
where it is not, it replaces the last of them.

Sun et al. 2019, *Fast Structured Decoding for Sequence Models* (k = 64).
Tested against: topk over all logits at once; every reference is found at its index.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from headwise.errors import UsageError
from headwise.training.losses import choose_chunk_size

COUNT = 64


@torch.no_grad()
def best_tokens(
    hidden: Float[Tensor, "*position dim"],
    weight: Float[Tensor, "vocab dim"],
    *,
    bias: Float[Tensor, " vocab"] | None = None,
    count: int = COUNT,
    chunk_size: int | None = None,
) -> Int[Tensor, "*position candidate"]:
    """The `count` tokens with the highest logits at each position (or all tokens), best first."""
    states = hidden.flatten(0, -2)
    count = min(count, len(weight))
    if chunk_size is None:
        chunk_size = choose_chunk_size(len(states), len(weight), device=hidden.device.type)
    chosen = [
        F.linear(chunk, weight, bias).topk(count).indices for chunk in states.split(chunk_size)
    ]
    return torch.cat(chosen).view(*hidden.shape[:-1], count)


def force_gold(
    candidates: Int[Tensor, "pair position candidate"], gold: Int[Tensor, "pair position"]
) -> tuple[Int[Tensor, "pair position candidate"], Int[Tensor, "pair position"]]:
    """Candidates that contain the reference token, and its index among them.

    `candidates` come best first; where the reference is not among them it replaces the last.
    """
    if candidates.shape[:2] != gold.shape:
        raise UsageError(
            f"candidates of {tuple(candidates.shape[:2])} positions and references of "
            f"{tuple(gold.shape)} were given; both need the same pairs and positions: pad the "
            "references to the width of the candidates",
            f"候选有 {tuple(candidates.shape[:2])} 个位置，参考有 {tuple(gold.shape)} 个；"
            "两者的句对与位置须相同：请把参考填充到候选的宽度",
        )
    same = candidates == gold[..., None]
    found = same.any(-1)
    last = torch.where(found, candidates[..., -1], gold)
    index = torch.where(found, same.int().argmax(-1), candidates.shape[-1] - 1)
    return torch.cat([candidates[..., :-1], last[..., None]], dim=-1), index
