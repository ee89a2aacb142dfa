"""Computes which tokens each attention kernel lets attend to which: the weights of the kernel on
one short random example. The page shows these tables side by side.

    weights   kernel.weights(q, k, mask); q and k are normal with a slow drift, so that
              neighbouring tokens are somewhat similar
    pairs     how many of the length² pairs have a weight: what a sparse kernel saves
    rank      the rank of the table: what a low-rank or linear kernel saves

The kernels are built as for a model, from the example settings that each of them declares.

Tested against: the masks of the patterns, and the ranks that follow from the formulas.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from headwise.attention.capabilities import AttentionKind, keys_are_queries
from headwise.attention.choices import build_attention, find_attention
from headwise.attention.masks import causal, everything
from headwise.errors import UsageError
from headwise.initialization import initialize
from headwise.randomness import torch_generator
from headwise.settings.added_kinds import FoundKinds

DRIFT = 0.9
"""The share of a token's vector that the next token keeps."""


def find_shown() -> FoundKinds[AttentionKind]:
    """The kernels with weights of their own (the fused kernel has those of the full one), and the
    words of installed packages that cannot be used.
    """
    found = find_attention()
    shown = {word: kind for word, kind in found.usable.items() if kind.has_own_weights}
    return replace(found, usable=shown)


def shown_kinds() -> dict[str, type[AttentionKind]]:
    """The kernels that can be shown."""
    return find_shown().usable


@dataclass(frozen=True)
class AttentionPattern:
    kind: str
    length: int
    is_causal: bool
    weights: list[list[float]]
    num_pairs: int
    """The number of pairs (query, key) with a weight."""
    rank: int
    settings: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "share": self.num_pairs / self.length**2}


def draw_example(length: int, head_dim: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random queries and keys [1, 1, length, head_dim] of one drifting sequence."""
    generator = torch_generator("patterns", seed)
    noise = torch.randn(2, length, head_dim, generator=generator)
    rows = [noise[:, 0]]
    for step in range(1, length):
        rows.append(DRIFT * rows[-1] + (1 - DRIFT**2) ** 0.5 * noise[:, step])
    drifting = torch.stack(rows, dim=1)
    # Half of each query is its own key, so that queries resemble keys near them.
    k = drifting[0]
    q = (drifting[0] + drifting[1]) / 2**0.5
    return 1.5 * q[None, None], k[None, None]


@torch.inference_mode()
def show_pattern(
    settings: AttentionKind,
    *,
    length: int,
    head_dim: int = 16,
    is_causal: bool = False,
    seed: int = 0,
) -> AttentionPattern:
    """The weights [query, key] of one kernel. A kernel that cannot be causal refuses `causal` when
    it is built.
    """
    layer = build_attention(
        settings,
        dim=head_dim,
        num_heads=1,
        dropout_rate=0.0,
        role="decoder" if is_causal else "encoder",
    )
    initialize(layer, torch_generator("patterns", seed, "weights"))
    layer.eval()
    q, k = draw_example(length, head_dim, seed=seed)
    if keys_are_queries(layer.kernel):
        k = q
    mask = causal() if is_causal else everything()
    table = layer.kernel.weights(q, k, layer.kernel.prepare(mask, length, length, q.device))[
        0, 0
    ].double()
    return AttentionPattern(
        settings.kind,
        length,
        is_causal,
        [[round(weight, 6) for weight in row] for row in table.tolist()],
        int((table != 0).sum()),
        int(torch.linalg.matrix_rank(table, rtol=1e-5)),
        settings.model_dump(mode="json"),
    )


def resize_example(kind: str, size: int | None) -> AttentionKind:
    """The example settings of a kernel, with another size if one is given."""
    kinds = shown_kinds()
    if kind not in kinds:
        raise UsageError(
            f"there is no attention kernel {kind!r} to be shown; choose from {', '.join(kinds)}",
            f"没有可显示的注意力内核 {kind!r}；可选：{'、'.join(kinds)}",
        )
    example = kinds[kind].example()
    return example if size is None else example.resize(size)
