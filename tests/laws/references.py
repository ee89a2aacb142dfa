"""What kernels with weights of their own kind are compared with: written out over all pairs, apart
from the library's code."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwise.attention.kernels.performer import EPSILON
from headwise.attention.masks import Mask


def visible(mask: Mask, q: Tensor, k: Tensor) -> Tensor:
    table = mask.dense(q.shape[2], k.shape[2], q.device)
    return torch.ones(1, 1, 1, 1, dtype=torch.bool) if table is None else table


@dataclass(frozen=True)
class QuadraticLinear:
    """Linear attention as a table: (elu(q) + 1) · (elu(k) + 1), hidden pairs zero, rows divided by
    their sums."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, **_: Any) -> Tensor:
        features = [torch.nn.functional.elu(x) + 1 for x in (q, k)]
        products = torch.einsum("bhqf,bhkf->bhqk", *features) * visible(mask, q, k)
        total = products.sum(-1, keepdim=True)
        return torch.einsum("bhqk,bhkv->bhqv", products / torch.where(total > 0, total, 1), v)


@dataclass(frozen=True)
class QuadraticPerformer:
    """Performer as a table of estimated exponentials, without the precautions against overflow."""

    rows: Tensor

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, **_: Any) -> Tensor:
        features = []
        for x in (q, k):
            scaled = x / x.shape[-1] ** 0.25
            projected = torch.einsum("bhtd,md->bhtm", scaled, self.rows.to(x.dtype))
            feature = projected.exp() / (scaled.square().sum(-1, keepdim=True) / 2).exp()
            features.append(
                EPSILON + (feature / feature.amax(-1, keepdim=True) if x is q else feature)
            )
        products = torch.einsum("bhqf,bhkf->bhqk", *features) * visible(mask, q, k)
        total = products.sum(-1, keepdim=True)
        return torch.einsum("bhqk,bhkv->bhqv", products / torch.where(total > 0, total, 1), v)


@dataclass(frozen=True)
class QuadraticBounded:
    """Performer's bounded estimate as a table: vectors drawn into a ball, features of either side
    divided by their sum."""

    rows: Tensor

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, **_: Any) -> Tensor:
        features = []
        num_features, head_dim = self.rows.shape
        for x in (q, k):
            length = x.norm(dim=-1, keepdim=True) / head_dim**0.25
            shorter = (
                x
                / head_dim**0.25
                / (1 + length**2 / (2 * num_features / head_dim) ** (1 / 3)) ** 0.5
            )
            feature = torch.einsum("bhtd,md->bhtm", shorter, self.rows.to(x.dtype)).exp()
            features.append(feature / feature.sum(-1, keepdim=True))
        products = torch.einsum("bhqf,bhkf->bhqk", *features) * visible(mask, q, k)
        total = products.sum(-1, keepdim=True)
        return torch.einsum("bhqk,bhkv->bhqv", products / torch.where(total > 0, total, 1), v)


@dataclass(frozen=True)
class SharedQueryKey:
    """Reformer with one bucket for all: unit keys, oneself only when there is nobody else; hidden
    tokens are padding, and ask nothing."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, **_: Any) -> Tensor:
        length = q.shape[2]
        table = visible(mask, q, k).expand(q.shape[0], 1, length, length)
        table = table & table.any(-2)[..., None]  # a token that nobody sees is padding
        others = table & ~torch.eye(length, dtype=torch.bool)
        table = torch.where(others.any(-1, keepdim=True), others, table)
        scores = (
            torch.einsum("bhqd,bhkd->bhqk", q, k / k.norm(dim=-1, keepdim=True))
            / q.shape[-1] ** 0.5
        )
        exponentials = scores.exp() * table
        total = exponentials.sum(-1, keepdim=True)
        return exponentials / torch.where(total > 0, total, 1) @ v
