"""Makes the inputs on which the laws of attention are tested: random queries, keys and values, and
every mask (each part alone, each pair of parts, and all of them together).

Sizes are distinct primes so that a mixed-up axis cannot pass. Tensors of masks are sliced with the
batch, so that a law can run one element of the batch by itself under the mask that belongs to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import torch
from torch import Tensor

from headwise.attention.masks import Mask, causal, everything, explicit, padding, segments, window
from headwise.laws.case import HEAD_DIM, LawCase
from headwise.randomness import torch_generator

BATCH, HEADS, QUERIES, KEYS, VALUE_DIM = 2, 3, 5, 7, 13
PARTS = ("everything", "causal", "causal_offset", "window", "padding", "segments", "explicit")
NAMES = (
    *PARTS,
    *(f"{one}&{other}" for one, other in combinations(PARTS[1:], 2)),
    "&".join(PARTS[1:]),
)
LOW_NAMES = (
    "everything",
    "padding",
    "segments",
    "causal&padding",
    "causal&segments",
    "window&explicit",
)
"""In float32 and bfloat16: packed or padded, causal or not. How parts of a mask join does not
depend on the kind of number."""


@dataclass(frozen=True)
class Scene:
    """One input to attention, and the masks that fit it."""

    q: Tensor
    k: Tensor
    v: Tensor
    bias: Tensor
    query_segment: Tensor
    key_segment: Tensor
    real: Tensor
    table: Tensor

    @property
    def num_queries(self) -> int:
        return self.q.shape[2]

    @property
    def num_keys(self) -> int:
        return self.k.shape[2]

    def mask(self, name: str) -> Mask:
        mask = everything()
        for part in name.split("&"):
            mask = mask & self._part(part)
        return mask

    def _part(self, part: str) -> Mask:
        match part:
            case "everything":
                return everything()
            case "causal":
                return causal()
            case "causal_offset":
                return causal(2)
            case "window":
                return window(2, 1, offset=1)
            case "padding":
                return padding(self.real)
            case "segments":
                return segments(self.query_segment, self.key_segment)
            case "explicit":
                return explicit(self.table)
        raise AssertionError(part)

    def dense(self, name: str) -> Tensor:
        """The mask as a full table, computed apart from the kernels."""
        table = self.mask(name).dense(self.num_queries, self.num_keys, self.q.device)
        whole = (*self.q.shape[:3], self.num_keys)
        return torch.ones(whole, dtype=torch.bool) if table is None else table.expand(whole)

    def only(self, batch: int) -> "Scene":
        return Scene(*(value[batch : batch + 1] for value in vars(self).values()))

    def times(self, count: int) -> "Scene":
        """As many copies, in one batch."""
        return Scene(
            *(value.repeat(count, *[1] * (value.dim() - 1)) for value in vars(self).values())
        )

    def to(self, dtype: torch.dtype) -> "Scene":
        return Scene(
            *(
                value.to(dtype) if value.is_floating_point() else value
                for value in vars(self).values()
            )
        )


def make_scene(
    key: str,
    *,
    num_queries: int = QUERIES,
    num_keys: int = KEYS,
    value_dim: int = VALUE_DIM,
    square: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Scene:
    """`square` lets as many queries ask as there are keys, as self-attention does; in every `dtype`
    the same numbers, rounded."""
    generator = torch_generator("scene", key)
    num_queries = num_keys if square else num_queries

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    key_segment = torch.randint(0, 3, (BATCH, num_keys), generator=generator)
    query_segment = (
        key_segment if square else torch.randint(0, 3, (BATCH, num_queries), generator=generator)
    )
    return Scene(
        q=draw(BATCH, HEADS, num_queries, HEAD_DIM),
        k=draw(BATCH, HEADS, num_keys, HEAD_DIM),
        v=draw(BATCH, HEADS, num_keys, value_dim),
        bias=draw(BATCH, HEADS, num_queries, num_keys),
        query_segment=query_segment,
        key_segment=key_segment,
        real=torch.rand(BATCH, num_keys, generator=generator) < 0.7,
        table=torch.rand(BATCH, HEADS, num_queries, num_keys, generator=generator) < 0.6,
    ).to(dtype)


def scene_for(
    row: LawCase,
    key: str,
    *,
    num_queries: int = QUERIES,
    num_keys: int = KEYS,
    value_dim: int = VALUE_DIM,
    square: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Scene:
    """A scene as the kernel wants it: one that shares queries and keys gets them twice."""
    square = square or row.square_only
    scene = make_scene(
        key,
        num_queries=num_queries,
        num_keys=num_keys,
        value_dim=value_dim,
        square=square,
        dtype=dtype,
    )
    if row.unbroken:
        numbers = scene.key_segment.sort(dim=1, descending=True).values
        scene = replace(scene, query_segment=numbers, key_segment=numbers)
    return replace(scene, k=scene.q) if row.shared else scene


def cases(
    row: LawCase, key: str, dtype: torch.dtype = torch.float64
) -> Iterator[tuple[str, Scene, Tensor | None]]:
    """(mask name, scene, bias or None) for every mask the kernel does not refuse; in low precision
    fewer, and with a bias where it takes one."""
    is_low = dtype != torch.float64
    forms = (True,) if row.square_only else (False, True)
    scenes = [scene_for(row, key, square=square, dtype=dtype) for square in forms]
    for name in LOW_NAMES if is_low else NAMES:
        if not set(row.refuses) & set(name.split("&")):
            for scene in scenes:
                if not (is_low and row.takes_bias):
                    yield name, scene, None
                if row.takes_bias:
                    yield name, scene, scene.bias
