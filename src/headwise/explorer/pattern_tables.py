"""Every attention kernel as a picture: who looks at whom on a short random example, by the kernel's own weights.

    weights = kernel.weights(q, k, mask)     q, k normal with a slow drift, so that near tokens are a little more alike

    pairs   how many of length² pairs have a weight at all: what a sparse kernel saves
    rank    the rank of the table: what a low-rank or linear kernel saves; every sum of r products has rank at most r

The kernels are built as for a model, with sizes that show their shape at this length (`SMALL`).

Tested against: the masks of the patterns, ranks that the formulas promise.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from headwise.attention.choices import (
    AttentionSettings,
    BigBird,
    Full,
    Linear,
    Linformer,
    Longformer,
    Performer,
    Reformer,
    Window,
    build_attention,
)
from headwise.attention.kernels.reformer import SharedQueryKeyAttention
from headwise.attention.masks import causal, everything
from headwise.errors import UsageError
from headwise.initialization import initialize
from headwise.randomness import torch_generator

DRIFT = 0.9
"""How much of a token the next one keeps."""

SMALL: dict[str, AttentionSettings] = {
    "full": Full(),
    "window": Window(left=4, right=4),
    "longformer": Longformer(width=8, num_global=2, dilation=1),
    "bigbird": BigBird(block=4, num_window_blocks=3, num_global_blocks=2, num_random_blocks=1),
    "linformer": Linformer(rank=8, max_length=256),
    "reformer": Reformer(num_buckets=8, num_rounds=2, bucket_size=8),
    "linear": Linear(),
    "performer": Performer(num_features=64),
}
"""As small as a picture of 64 tokens needs; the fused kernel has the weights of the full one."""


@dataclass(frozen=True)
class Pattern:
    kind: str
    length: int
    is_causal: bool
    weights: list[list[float]]
    num_pairs: int
    """Pairs with a weight."""
    rank: int
    settings: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "share": self.num_pairs / self.length**2}


def draw_example(length: int, head_dim: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Queries and keys [1, 1, length, head_dim] of one drifting sequence."""
    generator = torch_generator("patterns", seed)
    noise = torch.randn(2, length, head_dim, generator=generator)
    rows = [noise[:, 0]]
    for step in range(1, length):
        rows.append(DRIFT * rows[-1] + (1 - DRIFT**2) ** 0.5 * noise[:, step])
    drifting = torch.stack(rows, dim=1)
    # Queries ask for what resembles their own place: half of them is their key.
    k = drifting[0]
    q = (drifting[0] + drifting[1]) / 2**0.5
    return 1.5 * q[None, None], k[None, None]


@torch.inference_mode()
def show_pattern(
    settings: AttentionSettings,
    *,
    length: int,
    head_dim: int = 16,
    is_causal: bool = False,
    seed: int = 0,
) -> Pattern:
    """The table [query, key] of one kernel; what cannot be causal is refused where it is built."""
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
    if isinstance(layer, SharedQueryKeyAttention):
        k = q
    mask = causal() if is_causal else everything()
    table = layer.kernel.weights(q, k, layer.kernel.prepare(mask, length, length, q.device))[
        0, 0
    ].double()
    return Pattern(
        settings.kind,
        length,
        is_causal,
        [[round(weight, 6) for weight in row] for row in table.tolist()],
        int((table != 0).sum()),
        int(torch.linalg.matrix_rank(table, rtol=1e-5)),
        settings.model_dump(mode="json"),
    )


def sized(kind: str, size: int | None) -> AttentionSettings:
    """A kernel of `SMALL` whose one telling number is `size`: how far, how wide, how many."""
    small = SMALL[kind]
    if size is None:
        return small
    match small:
        case Window():
            return Window(left=size, right=size)
        case Longformer():
            return Longformer(width=2 * size, num_global=small.num_global, dilation=1)
        case BigBird():
            return small.model_copy(update={"block": size})
        case Linformer():
            return small.model_copy(update={"rank": size})
        case Reformer():
            return small.model_copy(update={"bucket_size": size})
        case Performer():
            return small.model_copy(update={"num_features": size})
        case _:
            raise UsageError(
                f"attention {kind} has no size to choose; leave it out",
                f"{kind} 注意力没有可选的大小；请不要给出",
            )
