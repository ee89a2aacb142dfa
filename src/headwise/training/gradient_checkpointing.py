"""Gradient checkpointing: keep only the inputs of a block, recompute the rest in the backward pass.

Memory for activations falls from that of all layers to about that of one, for a third more
arithmetic (Chen et al. 2016, "Training deep nets with sublinear memory cost"). Dropout draws the
same numbers the second time, so loss and gradients are the same to the last bit.

Tested against: the gradients without it, bit by bit, and the bytes kept for the backward pass.
"""

import contextlib
from collections.abc import Iterator
from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint


def blocks_of(module: nn.Module) -> Iterator[nn.Module]:
    """The blocks of a model: the members of its outermost ModuleLists."""
    for child in module.children():
        yield from child if isinstance(child, nn.ModuleList) else blocks_of(child)


@contextlib.contextmanager
def recomputing_blocks(module: nn.Module) -> Iterator[None]:
    """Inside, every block of the module keeps only its inputs for the backward pass."""
    blocks = list(blocks_of(module))
    for block in blocks:
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
    try:
        yield
    finally:
        for block in blocks:
            del block.forward
