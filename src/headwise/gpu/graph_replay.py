"""Records a function once as a CUDA graph, then replays it with tensors of the same shape.

Launching a kernel costs the CPU several microseconds, more than most kernels of a decoding step
take. A CUDA graph holds all launches of a step, and replaying it is one launch. The function must
have no arguments and no result: it reads and writes tensors at fixed addresses. It must not wait
for the device, and its shapes may not depend on the contents of tensors.

    play = Recording(function, device)
    play()        # runs it, which compiles and warms up what needs it
    play()        # records and replays it
    play()        # replays it

On a CPU it only calls the function. Tested: the same numbers as plain calls, on both.
"""

from collections.abc import Callable
from typing import Any, ClassVar
from weakref import WeakSet

import torch


class Recording:
    """A function without arguments that a GPU replays from its second call on."""

    _pool: ClassVar[Any] = None
    _recorded: ClassVar["WeakSet[Recording]"] = WeakSet()
    """Those whose graphs use the pool."""

    def __init__(self, function: Callable[[], None], device: torch.device) -> None:
        self._function, self._device = function, device
        self._graph: torch.cuda.CUDAGraph | None = None
        self._calls = 0

    def __call__(self) -> None:
        self._calls += 1
        if self._device.type != "cuda" or self._calls == 1:
            self._function()
            return
        if self._graph is None:
            self._graph = self._record()
        self._graph.replay()

    def _record(self) -> torch.cuda.CUDAGraph:
        # All recordings share one pool of memory: they never run at the same time, and their
        # temporary tensors are not read afterwards. torch gives a pool up with its last graph, and
        # must not be asked for it again.
        if not Recording._recorded:
            Recording._pool = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=Recording._pool):
            self._function()
        Recording._recorded.add(self)
        return graph
