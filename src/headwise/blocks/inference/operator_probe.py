"""Tests whether one of torch's fast CPU products works on this machine, before it is used.

These operators are not public, and may be removed or missing. A layer is made from a small weight,
and a small product is compared with that of torch. Any failure becomes a reason in words, which
`headwise doctor` shows, and a slower form is used instead.
"""

import contextlib
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MakeLinear = Callable[[Tensor, Tensor | None], nn.Module]
"""From weight [output, input] and bias to the layer that multiplies with them."""


@torch.no_grad()
def refusal_of(make: MakeLinear, *, tolerance: float) -> str | None:
    """Why this kind of layer cannot be used here; None if it can. Results are of size √32."""
    generator = torch.Generator().manual_seed(0)
    x, weight = (torch.randn(shape, generator=generator) for shape in ((3, 32), (48, 32)))
    try:
        difference = (make(weight, None)(x) - F.linear(x, weight)).abs().max()
    except (
        AttributeError,
        RuntimeError,
    ) as error:  # the operator, or the hardware for it, is missing
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return None if difference < tolerance else "its products are wrong here"


@contextlib.contextmanager
def quantized_engine(name: str) -> Iterator[None]:
    """torch packs for the engine that is set for the whole process; the setting is restored
    afterwards."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = name
    try:
        yield
    finally:
        torch.backends.quantized.engine = before
