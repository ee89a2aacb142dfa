"""Feature maps: φ(q) · φ(k) in place of exp(q · k), so that attention becomes a product of three matrices.

    elu       φ(x) = elu(x) + 1                    positive, as weights must be; no approximation of the softmax, a kernel of its own

Katharopoulos et al. 2020, section 3.2.1. Features are computed in fp32 (fp64 for fp64) and handed on in the type that products
should have: bf16 on a GPU, whose product units add up in fp32; everywhere else fp32.

Tested against: the formula written out.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from headwise.attention.masked_products import widen

LOWEST, HIGHEST = -30.0, 1e12
"""Where x ends, so that sums of products of two features neither vanish nor overflow in fp32: e⁻³⁰ squared is 9e-27."""


def elu_features(x: Float[Tensor, "batch head time head_dim"]) -> Float[Tensor, "batch head time head_dim"]:
    # elu(x) + 1 would lose small values below one's rounding; for x < 0 it is exp(x), which keeps them.
    wide = widen(x)
    return torch.where(wide > 0, wide.clamp(max=HIGHEST) + 1, wide.clamp(LOWEST, 0).exp())


def product_dtype(x: Tensor) -> torch.dtype:
    """What to multiply in: bf16 where the hardware adds bf16 products up in fp32, else no less than fp32."""
    if x.dtype == torch.bfloat16 and x.device.type == "cuda":
        return torch.bfloat16
    return torch.float64 if x.dtype == torch.float64 else torch.float32
