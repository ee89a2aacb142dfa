"""How laws put their questions to kernels that differ in what they read and need to be told, and
judge the answers."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from headwise.attention.multi_head import Kernel, Standing
from headwise.laws.case import HEAD_DIM, LawCase
from headwise.laws.scenes import VALUE_DIM

STATIONS = 4
"""A half-precision number is rounded where it is stored: a score (which counts twice), a weight,
the result. Sums are taken in float32."""


def closeness(dtype: torch.dtype, *, more_terms: int = 0) -> float:
    """How far a result of size one may be off, from the rounding of its type alone.

    One rounding is off by u = eps / 2, so a sum of m numbers by m u at most. In float32 and float64
    the sums are taken in the type itself: a score adds HEAD_DIM products, a gradient VALUE_DIM of
    them; an error of a score counts twice, in its own weight and in the total that divides it.
    `more_terms`: what a kernel adds up besides.
    """
    half = dtype in (torch.bfloat16, torch.float16)
    roundings = STATIONS if half else 2 * (HEAD_DIM + VALUE_DIM + more_terms)
    return roundings * torch.finfo(dtype).eps / 2


def assert_same(given: Tensor, expected: Tensor, note: str = "", *, more_terms: int = 0) -> None:
    """`expected` is of the same type, or worked out in double precision from the same numbers."""
    assert expected.dtype in (given.dtype, torch.float64), note
    assert given.shape == expected.shape, note
    assert given.isfinite().all(), f"{note}: not finite"
    close = closeness(given.dtype, more_terms=more_terms)
    given, expected = given.double(), expected.double()
    assert torch.allclose(given, expected, rtol=close, atol=close), (
        f"{note}: {(given - expected).abs().max()}"
    )


def honoured(row: LawCase, *names: str) -> list[str]:
    """Of the masks, those the kernel does not refuse."""
    return [name for name in names if not set(row.refuses) & set(name.split("&"))]


def find_gradients(total: Tensor, leaves: list[Tensor]) -> tuple[Tensor, ...]:
    """Zeros for what is not read at all, such as the keys of a score that knows only places."""
    return torch.autograd.grad(
        total, leaves, retain_graph=True, allow_unused=True, materialize_grads=True
    )


def stand_at(kernel: Kernel, start: int, num_queries: int) -> Kernel:
    """The kernel told where its queries stand, if that matters to it: a step alone does not show
    it."""
    position = torch.arange(start, start + num_queries)[None]
    return kernel.stand_at(position) if isinstance(kernel, Standing) else kernel


@contextmanager
def refused(error: type[Exception], able: Iterable[str]) -> Iterator[None]:
    """The block must raise this error, in words that name one of these kinds."""
    try:
        yield
    except error as found:
        words = str(found)
        assert re.search("|".join(rf"\b{word}\b" for word in able), words), (
            f"no way out in: {words}"
        )
        return
    raise AssertionError(f"{error.__name__} was not raised")
