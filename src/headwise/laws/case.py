"""`LawCase`: one kernel as the laws test it, with its masks and inputs.

`case_of(settings)` makes a case from what a kind declares about itself (attention/capabilities.py),
so that every kernel a recipe may name is checked as it declares itself. A case can also be written
by hand, for sizes that no recipe has (blocks of two tokens) or for a setting in which the kernel
must equal another.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from headwise.attention.capabilities import EVERY_MASK, AttentionKind
from headwise.attention.kernels.full import FullAttention
from headwise.attention.multi_head import Kernel
from headwise.initialization import initialize
from headwise.randomness import torch_generator

HEAD_DIM = 11
"""Width of a head in the inputs of all laws; kernels with weights are built for it."""


@dataclass(frozen=True)
class LawCase:
    """One kernel, with ordinary settings."""

    name: str
    build: Callable[[float], Kernel]
    """Takes a dropout rate."""
    exact: Callable[[int], Kernel] | None = None
    """Takes a length and gives the kernel set so that it must equal `reference` on rows of that
    length: a window at least that long, the full rank, one bucket. None: there is no such setting.
    """
    refuses: tuple[str, ...] = ()
    """Parts of masks that the kernel cannot honour. It must raise MaskError for them, in a message
    that names a kernel that can."""
    takes_bias: bool = True
    takes_vectors: bool = False
    """Whether a bias may also add vectors to the values."""
    order_free: bool = True
    """Whether the order of the keys does not matter if the mask is permuted with them."""
    square_only: bool = False
    """Whether it computes self-attention only, with as many queries as keys."""
    reference: Callable[[], Any] = FullAttention
    """What `exact` must equal, where the weights of the kernel are not those of full attention."""
    continuous: bool = True
    """Whether the output is continuous in the input."""
    shared: bool = False
    """Whether the keys are the queries; the laws then pass the same vectors for both."""
    unbroken: bool = False
    """Whether the tokens of a segment must be contiguous in their row."""
    sums_to_one: bool = True
    """Whether the weights of a query are non-negative and sum to one."""
    more_terms: int = 0
    """How many numbers it sums beyond the scores and means of full attention."""

    @property
    def kind(self) -> str:
        return self.name.partition("/")[0]


def case_of(settings: AttentionKind, *, name: str | None = None) -> LawCase:
    """A kernel as its settings declare it, with its weights drawn from a fixed key."""

    def build(rate: float) -> Kernel:
        kernel = settings.build_kernel(head_dim=HEAD_DIM, dropout_rate=rate)
        if isinstance(kernel, nn.Module):
            initialize(kernel, torch_generator("laws", settings.kind))
            kernel.to(torch.float64)
        return kernel

    takes = settings.takes
    return LawCase(
        settings.kind if name is None else name,
        build,
        refuses=tuple(sorted(EVERY_MASK - settings.masks)),
        takes_bias="distances" in takes,
        takes_vectors="weights" in takes,
        order_free=not settings.knows_order,
        square_only=settings.one_sequence_only,
        continuous=settings.is_continuous,
        shared=bool(getattr(build(0.0), "keys_are_queries", False)),
        unbroken=settings.whole_segments,
        sums_to_one=settings.sums_to_one,
        more_terms=settings.num_extra_terms,
    )
