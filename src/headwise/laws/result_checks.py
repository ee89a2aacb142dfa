"""Functions with which the laws of attention call kernels and compare results.

They have rounding tolerances, gradients, positions of queries and expected refusals.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from headwise.attention.multi_head import Kernel, Standing
from headwise.laws.case import HEAD_DIM, LawCase
from headwise.laws.random_inputs import VALUE_DIM

STATIONS = 4
"""A half-precision number is rounded where it is stored: a score (which counts twice), a weight,
the result. Sums are taken in float32."""


def closeness(dtype: torch.dtype, *, more_terms: int = 0) -> float:
    """The rounding error that a result of size one may have in its type.

    One rounding is off by u = eps / 2, so a sum of m numbers by m u at most. In float32 and float64
    the sums are taken in the type itself: a score adds HEAD_DIM products, a gradient VALUE_DIM of
    them; an error of a score counts twice, in its own weight and in the total that divides it.
    `more_terms`: how many more numbers the kernel sums.
    """
    half = dtype in (torch.bfloat16, torch.float16)
    roundings = STATIONS if half else 2 * (HEAD_DIM + VALUE_DIM + more_terms)
    return roundings * torch.finfo(dtype).eps / 2


def assert_same(given: Tensor, expected: Tensor, note: str = "", *, more_terms: int = 0) -> None:
    """`expected` has the same type, or was computed in double precision from the same numbers."""
    assert expected.dtype in (given.dtype, torch.float64), note
    assert given.shape == expected.shape, note
    assert given.isfinite().all(), f"{note}: not finite"
    close = closeness(given.dtype, more_terms=more_terms)
    given, expected = given.double(), expected.double()
    assert torch.allclose(given, expected, rtol=close, atol=close), (
        f"{note}: {(given - expected).abs().max()}"
    )


def honoured(row: LawCase, *names: str) -> list[str]:
    """The masks that the kernel supports, out of those named."""
    return [name for name in names if not set(row.refuses) & set(name.split("&"))]


def find_gradients(total: Tensor, leaves: list[Tensor]) -> tuple[Tensor, ...]:
    """Gradients; zeros for an input that is not used, such as the keys of a score of positions."""
    return torch.autograd.grad(
        total, leaves, retain_graph=True, allow_unused=True, materialize_grads=True
    )


def assert_derivatives(call: Callable[..., Tensor], leaves: list[Tensor], note: str) -> None:
    """Every derivative of every number that `call` gives equals the difference of two results, one
    for an input a little larger and one for an input a little smaller. `leaves` are rows of one;
    `call` is given all differences as rows of one batch, with the step and the bounds of
    torch.autograd.gradcheck, which calls once for each."""
    step, sizes = 1e-6, [leaf.numel() for leaf in leaves]
    moves = step * torch.eye(sum(sizes), dtype=leaves[0].dtype)

    def shaped(rows: Tensor) -> list[Tensor]:
        parts = zip(rows.split(sizes, dim=1), leaves, strict=True)
        return [part.reshape(-1, *leaf.shape[1:]) for part, leaf in parts]

    flat = torch.cat([leaf.flatten() for leaf in leaves])
    larger, smaller = (call(*shaped(flat + move)).flatten(1) for move in (moves, -moves))
    once = call(*leaves).flatten()
    given = [leaf.requires_grad_() for leaf in shaped(flat.repeat(len(once), 1))]
    outputs = call(*given).flatten(1)
    assert_same(outputs, once.expand_as(outputs), note)
    found = find_gradients(outputs.diagonal().sum(), given)
    again = find_gradients(call(*given).flatten(1).diagonal().sum(), given)
    assert all(map(torch.equal, found, again)), (
        f"{note}: a second backward pass gives another result"
    )
    derivatives = torch.cat([gradient.flatten(1) for gradient in found], dim=1)
    differences = ((larger - smaller) / (2 * step)).mT
    assert torch.allclose(derivatives, differences, rtol=1e-3, atol=1e-5), (
        f"{note}: {(derivatives - differences).abs().max()} between a derivative and a difference"
    )


def stand_at(kernel: Kernel, start: int, num_queries: int) -> Kernel:
    """The kernel with the positions of its queries, if it uses them: a single step does not show
    them."""
    position = torch.arange(start, start + num_queries)[None]
    return kernel.stand_at(position) if isinstance(kernel, Standing) else kernel


@contextmanager
def refused(error: type[Exception], able: Iterable[str]) -> Iterator[None]:
    """The block must raise this error, with a message that names one of these kinds."""
    try:
        yield
    except error as found:
        words = str(found)
        assert re.search("|".join(rf"\b{word}\b" for word in able), words), (
            f"no way out in: {words}"
        )
        return
    raise AssertionError(f"{error.__name__} was not raised")
