"""Records one update of a training as a CUDA graph: a single call launches the hundreds of kernels
of a step.

The host needs a few microseconds to launch a kernel. At 4,096 tokens a step has 600 kernels that
run for 5 ms, and launching them takes 30 ms. All shapes are static, so the whole update (loss,
gradients, clipping, AdamW, running sums) is recorded once and then replayed: the host only copies
each batch into the recorded input tensors.

Recording does not execute anything. The first updates run normally, on a stream of their own, so
that everything is compiled and allocated before the recording begins. Every update is applied
exactly once. Dropout stays correct: a replay takes seed and offset from torch's generator, as
normal execution does.

Tested on a GPU: replayed updates give the same weights, bit for bit, as normal ones; an update that
cannot be recorded continues without recording (benchmarks/check_gpu.py).
"""

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from headwise.language import say
from headwise.training.prefetching import map_tensors

logger = logging.getLogger(__name__)

NUM_PLAIN_UPDATES = 3


class CapturedUpdate:
    """A function that takes batches and changes tensors in place; replayed from its fourth
    call on.
    """

    def __init__(
        self, update: Callable[[Sequence[Any]], None], device: torch.device, *, insist: bool = True
    ) -> None:
        self._update, self._device, self._insist = update, device, insist
        self._stream = torch.cuda.Stream(device)
        self._num_plain_left: float = NUM_PLAIN_UPDATES
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, batches: Sequence[Any]) -> None:
        if self._num_plain_left == 0 and self._graph is None:
            self._record(batches)
        if self._graph is None:
            self._num_plain_left -= 1
            self._run_plainly(batches)
            return
        for tensor, place in zip(_tensors(batches), self._places, strict=True):
            place.copy_(tensor, non_blocking=True)
        self._graph.replay()

    def _run_plainly(self, batches: Sequence[Any]) -> None:
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            self._update(batches)
        torch.cuda.current_stream(self._device).wait_stream(self._stream)

    def _record(self, batches: Sequence[Any]) -> None:
        recorded = map_tensors(list(batches), torch.clone)
        self._places = _tensors(recorded)
        graph = torch.cuda.CUDAGraph()
        generator = torch.cuda.default_generators[self._stream.device_index]
        before = generator.clone_state()
        try:
            # Other threads copy the next batch to pinned memory meanwhile; their calls are not
            # recorded and must not end the recording.
            with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
                self._update(recorded)
        except RuntimeError as error:
            if self._insist:
                raise
            # Something in the model waits for the device: an update works, but cannot be recorded.
            self._num_plain_left = math.inf
            # The state used while recording is still marked as recording.
            generator.graphsafe_set_state(before)
            reason = str(error).partition("\n")[0]
            logger.warning(
                say(
                    f"the update cannot be recorded as a CUDA graph ({reason}): training runs "
                    "without, slower but correct",
                    f"该更新无法录制为 CUDA 图（{reason}）：训练将不使用它，较慢但结果正确",
                )
            )
            return
        self._graph = graph


def _tensors(batches: Sequence[Any]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor)
        return tensor

    map_tensors(list(batches), note)
    return found
