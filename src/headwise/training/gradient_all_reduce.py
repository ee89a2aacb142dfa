"""Adding up the gradients of all processes while backward is still busy with the rest.

    gradient = Σ over processes of their Σ over rows of ∂ loss / ∂ w          (whoever knows all target tokens divides)

Gradients live in a few flat buffers, last layers first, because that is where backward begins. As
soon as all gradients of a buffer are there, its sum over the processes starts, and travels while
earlier layers are worked on: the idea of DDP (Li et al. 2020), which torch offers as a class. Ours
differs in two points. It takes the sum and not the mean of the processes, since they may hold
different numbers of target tokens. And its buffers never change: torch's are regrouped after the
first step, which changes the order of addition, so that three or more processes that are resumed
would not repeat the bits of those that were not.

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
    """Owns the gradients of the parameters: they are views into its buffers, and must be zeroed,
    not dropped.
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
        """Backward of one piece; after the last piece of an update, gradients are those of all
        processes.
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
        """Sums start in the same order everywhere, or they would wait for each other for ever."""
        while len(self._work) < len(self._buffers) and self._missing[len(self._work)] == 0:
            self._work.append(dist.all_reduce(self._buffers[len(self._work)], async_op=True))


def group_parameters(parameters: Sequence[Tensor]) -> list[list[Tensor]]:
    """Neighbours of one type, from the last to the first, up to the size of a buffer."""
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
