"""What kernels with weights of their own kind are compared with: written out over all pairs, apart from the library's code."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwise.attention.masks import Mask


def visible(mask: Mask, q: Tensor, k: Tensor) -> Tensor:
    table = mask.dense(q.shape[2], k.shape[2], q.device)
    return torch.ones(1, 1, 1, 1, dtype=torch.bool) if table is None else table


@dataclass(frozen=True)
class QuadraticLinear:
    """Linear attention as a table: (elu(q) + 1) · (elu(k) + 1), hidden pairs zero, rows divided by their sums."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, **_: Any) -> Tensor:
        features = [torch.nn.functional.elu(x) + 1 for x in (q, k)]
        products = torch.einsum("bhqf,bhkf->bhqk", *features) * visible(mask, q, k)
        total = products.sum(-1, keepdim=True)
        return torch.einsum("bhqk,bhkv->bhqv", products / torch.where(total > 0, total, 1), v)
