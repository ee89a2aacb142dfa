"""How laws put their questions to kernels that differ in what they read and need to be told, and judge the answers."""

import torch
from torch import Tensor

from headwise.attention.multi_head import Kernel, Standing
from tests.laws.kernels import Row

CLOSE = {torch.float64: 1e-9, torch.float32: 1e-5, torch.bfloat16: 5e-2, torch.float16: 5e-3}


def assert_same(given: Tensor, expected: Tensor, note: str = "") -> None:
    assert given.dtype == expected.dtype, note
    assert given.shape == expected.shape, note
    tolerance = CLOSE[given.dtype]
    assert given.isfinite().all(), f"{note}: not finite"
    assert torch.allclose(given, expected, rtol=tolerance, atol=tolerance), f"{note}: {(given - expected).abs().max()}"


def honoured(row: Row, *names: str) -> list[str]:
    """Of the masks, those the kernel does not refuse."""
    return [name for name in names if not set(row.refuses) & set(name.split("&"))]


def find_gradients(total: Tensor, leaves: list[Tensor]) -> tuple[Tensor, ...]:
    """Zeros for what is not read at all, such as the keys of a score that knows only places."""
    return torch.autograd.grad(total, leaves, retain_graph=True, allow_unused=True, materialize_grads=True)


def stand_at(kernel: Kernel, start: int, num_queries: int) -> Kernel:
    """The kernel told where its queries stand, if that matters to it: a step alone does not show it."""
    position = torch.arange(start, start + num_queries)[None]
    return kernel.stand_at(position) if isinstance(kernel, Standing) else kernel
