"""Random generators from keys: the same key gives the same numbers on every machine.

Nothing in the package reads or sets a global seed. A key is any sequence of integers and words,
such as `(seed, "order", epoch)`; BLAKE2b turns it into the seed of a generator. Streams of
different keys are independent, and a run can be resumed from integers alone.
"""

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def seed_from(*keys: int | str) -> int:
    """A 63-bit seed from a key; 63 bits because torch's generators take a signed integer."""
    text = "\x1f".join(f"{type(key).__name__}:{key}" for key in keys)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def numpy_generator(*keys: int | str) -> np.random.Generator:
    """A counter-based generator (Philox), whose output does not depend on the platform."""
    return np.random.Generator(np.random.Philox(seed_from(*keys)))


def mix_bits(values: np.ndarray) -> np.ndarray:
    """The finalizer of SplitMix64 (Steele et al.

    2014): every input bit reaches every output bit. Of counters, it is a random number for each.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def torch_generator(*keys: int | str, device: "torch.device | str" = "cpu") -> "torch.Generator":
    import torch

    return torch.Generator(device=device).manual_seed(seed_from(*keys))
