"""Checks of the sizes that a kernel is built with: block lengths, numbers of buckets, ranks.

A block of zero tokens or a hash without buckets would fail later, or give wrong results. Each
kernel states its sizes with their bounds. Recipes have the same bounds in their settings; these
checks are for kernels that are built by hand.

Tested against: one nonsensical value for every size of every kernel.
"""

from dataclasses import dataclass
from numbers import Integral

import torch

from headwise.errors import UsageError

LARGEST_SIZE = 1 << 30


@dataclass(frozen=True)
class BoundedSize:
    """A size with its bounds."""

    name: str
    given: object
    """A whole number, to be checked; None: the kernel decides."""
    least: int = 1
    most: int = LARGEST_SIZE
    is_even: bool = False


def check_sizes(kernel: str, *sizes: BoundedSize) -> None:
    """Refuse a kernel with a size out of its bounds. Kernels built inside a compiled step are not
    checked: they are copies of checked ones."""
    if torch.compiler.is_compiling():
        return
    for size in sizes:
        if size.given is None:
            continue
        number = int(size.given) if isinstance(size.given, Integral) else None
        if (
            number is None
            or not size.least <= number <= size.most
            or (size.is_even and number % 2 != 0)
        ):
            kind, kind_zh = (
                ("an even number", "偶数") if size.is_even else ("a whole number", "整数")
            )
            raise UsageError(
                f"{kernel} was given {size.name}={size.given!r}; {kind} from {size.least} to "
                f"{size.most:,} is needed: build it with another {size.name}",
                f"{kernel} 收到 {size.name}={size.given!r}；需要 {size.least} 到 {size.most:,} "
                f"之间的{kind_zh}：请换一个 {size.name}",
            )
