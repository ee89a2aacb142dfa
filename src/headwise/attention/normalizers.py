"""From scores to weights: the softmax, with hidden keys given exactly nothing.

    weights_j = exp(score_j − max) / Σ_k exp(score_k − max)      over the keys that may be looked at

Filling happens here and nowhere else. The softmax is computed in float32 whatever the input; a query that may look at
nothing gets zeros (not NaN), and so passes back a zero gradient.

Tested against: torch.softmax over the visible keys alone, and finite differences in double precision.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def masked_softmax(
    scores: Float[Tensor, "batch head query key"], allowed: Bool[Tensor, "#batch #head #query key"] | None
) -> Float[Tensor, "batch head query key"]:
    precise = scores if scores.dtype == torch.float64 else scores.float()
    if allowed is None:
        return precise.softmax(-1).to(scores.dtype)
    # The lowest finite number instead of -inf: a row without a visible key stays finite and is zeroed afterwards.
    precise = precise.masked_fill(~allowed, torch.finfo(precise.dtype).min)
    return precise.softmax(-1).masked_fill(~allowed, 0.0).to(scores.dtype)
