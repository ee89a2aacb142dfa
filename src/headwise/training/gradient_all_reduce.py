"""Sums the gradients of all processes while the backward pass is still running.

    gradient = Σ over processes of Σ over their rows of ∂ loss / ∂ w

Gradients are views into a few flat buffers, last layers first, because the backward pass begins
there. As soon as all gradients of a buffer are computed, its all-reduce starts and overlaps with
the backward pass of earlier layers. This is the idea of DDP (Li et al. 2020), which torch offers as
a class. Ours differs in two points. It sums instead of averaging, because processes may hold
different numbers of target tokens; `updates.py` divides by the total. And its buffers never change:
torch regroups them after the first step, which changes the order of addition, so that a resumed run
with three or more processes would not repeat the bits of an undisturbed one.

Tested against: one process with all rows, in float64; torch's DistributedDataParallel.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

# Large enough for full bandwidth, small enough for the first sum to start early (the size DDP
# chose).
BUFFER_BYTES = 25 << 20


class GradientSum:
    """Owns the gradients of the parameters as views into its buffers.

    They must be set to zero after an update, not dropped.
    """

    def __init__(self, parameters: Sequence[Tensor], *, overlap: bool) -> None:
        self._buffers: list[Tensor] = []
        self._missing: list[int] = []
        self._work: list[dist.Work] = []
        self._is_last = False
        groups = group_parameters(parameters)
        for group in groups:
            buffer = torch.zeros(
                sum(p.numel() for p in group), dtype=group[0].dtype, device=group[0].device
            )
            parts = buffer.split([parameter.numel() for parameter in group])
            for parameter, part in zip(group, parts, strict=True):
                parameter.grad = part.view_as(parameter)
                if overlap:
                    self._notify(parameter, len(self._buffers))
            self._buffers.append(buffer)
        self._sizes = [len(group) for group in groups]

    def _notify(self, parameter: Tensor, number: int) -> None:
        def arrived(_: Tensor) -> None:
            if self._is_last:
                self._missing[number] -= 1
                self._start_ready()

        parameter.register_post_accumulate_grad_hook(arrived)

    def backward(self, loss: Tensor, *, is_last: bool) -> None:
        """Backward pass of one batch; after the last batch of an update, the gradients are those of
        all processes.
        """
        self._is_last, self._missing = is_last, list(self._sizes)
        loss.backward()
        if is_last:
            self._missing = [0] * len(self._buffers)
            self._start_ready()
            for work in self._work:
                work.wait()
            self._work.clear()

    def _start_ready(self) -> None:
        """All processes must start their sums in the same order, or they would deadlock."""
        while len(self._work) < len(self._buffers) and self._missing[len(self._work)] == 0:
            self._work.append(dist.all_reduce(self._buffers[len(self._work)], async_op=True))


def group_parameters(parameters: Sequence[Tensor]) -> list[list[Tensor]]:
    """Neighbouring parameters of one dtype, from last to first, up to the size of a buffer."""
    groups: list[list[Tensor]] = []
    filled = 0
    for parameter in reversed(parameters):
        size = parameter.numel() * parameter.element_size()
        if not groups or filled + size > BUFFER_BYTES or groups[-1][0].dtype != parameter.dtype:
            groups.append([])
            filled = 0
        groups[-1].append(parameter)
        filled += size
    return groups
