"""Dropout: each number is set to zero with probability p; the others are multiplied by 1 / (1 - p).

    noise ~ uniform{0 … 255},  t = round(256 p)
    y = x · 256 / (256 - t) where noise ≥ t, else 0

Most of the cost of dropout is that of its random numbers, so one random byte decides about one
number. The rate is therefore a multiple of 1/256 (0.1 becomes 0.1016). The scale uses the actual
rate, so the mean of y is exactly x.

- Eager: each draw of 64 bits is cut into 8 bytes.
- Compiled: the byte is a hash of (seed, index of the number), 15 integer operations that are fused
  into the kernel that needs them, forward and again backward, so that no mask is stored. The hash
  is MurmurHash3's finaliser, twice.

Hinton et al. 2012; Srivastava et al. 2014. Tested against: the share of zeros, the mean, the same
seed giving the same zeros, independence of neighbouring indices and seeds (chi-square).
"""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

NUM_LEVELS = 256
IN_STEPS = "a multiple of 1/256"
"""Marks the settings whose value becomes the rate of `drop`, so that one that rounds to nothing is
found (tasks/preflight.py)."""
DropRate = Annotated[float, Field(ge=0.0, lt=1.0), IN_STEPS]
"""A rate of `drop` in a recipe."""


def drop(x: Tensor, rate: float, *, training: bool, shared: int | None = None) -> Tensor:
    """x with a share `rate` of its numbers set to zero while training; draws from torch's generator
    of the device of x.

    Along the axis `shared` the same positions are dropped ("locked" or variational dropout, Gal &
    Ghahramani 2016).
    """
    threshold = count_levels(rate)
    if not training or threshold == 0:
        return x
    if shared is not None:
        return x * drop(torch.ones_like(x.narrow(shared, 0, 1)), rate, training=True)
    if torch.compiler.is_compiling():
        noise = hashed_bytes(
            torch.randint(-(2**31), 2**31 - 1, (1,), dtype=torch.int32, device=x.device), x.shape
        )
    else:
        noise = drawn_bytes(x.numel(), x.device).view(x.shape)
    return torch.where(noise >= threshold, x * (NUM_LEVELS / (NUM_LEVELS - threshold)), 0.0)


def count_levels(rate: float) -> int:
    """How many of the 256 values of a byte mean zero; at least one value keeps the number, so that
    the scale is finite."""
    return min(round(rate * NUM_LEVELS), NUM_LEVELS - 1)


def drawn_bytes(count: int, device: torch.device) -> Tensor:
    words = torch.empty(-(-count // 8), dtype=torch.int64, device=device)
    return words.random_(-(2**63), None).view(torch.uint8)[:count]


def hashed_bytes(seed: Tensor, shape: torch.Size) -> Tensor:
    """A number in 0 … 255 for every index of the shape, a function of the seed and the index."""
    place = torch.arange(shape.numel(), dtype=torch.int32, device=seed.device).view(shape)
    return _mix(_mix(place) ^ seed) & (NUM_LEVELS - 1)


def _mix(x: Tensor) -> Tensor:
    """MurmurHash3's finaliser: every bit of a 32-bit number comes to depend on every other."""
    x = (x ^ ((x >> 16) & 0xFFFF)) * -2048144789
    x = (x ^ ((x >> 13) & 0x7FFFF)) * -1028477387
    return x ^ ((x >> 16) & 0xFFFF)
