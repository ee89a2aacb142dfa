"""A function of tensors that is recorded as a CUDA graph, once for each shape of its arguments.

`Recording` (graph_replay.py) replays a function without arguments and results. Here arguments are
copied to places that stay, the recorded function reads them there, and its results are copied out,
because the next recording may use the same memory:

    arguments → places ─ replay → results that stay ─ copy → results

Shapes should be rounded by the caller, so that a few recordings serve all inputs; those that were
not used for longest are given up. If a function cannot be recorded (it waits for the device), it is
called plainly from then on, and a warning says so.

On a CPU the function is called each time, with the arguments at their places.
Tested: equals plain calls, through several shapes.
"""

import logging
from collections.abc import Callable

import torch
from torch import Tensor

from headwise.gpu.graph_replay import Recording
from headwise.language import say

MAX_SHAPES = 64
logger = logging.getLogger(__name__)


class RecordedFunction:
    """`function` takes tensors and gives tensors, and changes nothing else."""

    def __init__(self, function: Callable[..., tuple[Tensor, ...]]) -> None:
        self._function = function
        self._recorded: dict[tuple[object, ...], _OneShape] = {}
        self.is_plain = False
        """Whether it could not be recorded."""

    def __call__(self, *arguments: Tensor) -> tuple[Tensor, ...]:
        if self.is_plain:
            return self._function(*arguments)
        key = tuple((one.shape, one.dtype) for one in arguments)
        found = self._recorded.pop(key, None)
        if found is None:
            if len(self._recorded) >= MAX_SHAPES:
                del self._recorded[next(iter(self._recorded))]
            found = _OneShape(self._function, arguments)
        self._recorded[key] = found  # the last in order: used most recently
        try:
            return found(arguments)
        except RuntimeError as error:
            if not torch.cuda.is_available() or isinstance(error, torch.OutOfMemoryError):
                raise
            self._give_up(error)
            return self._function(*arguments)

    def _give_up(self, error: RuntimeError) -> None:
        self.is_plain = True
        self._recorded.clear()
        reason = str(error).partition("\n")[0]
        logger.warning(
            say(
                f"a pass of the model cannot be recorded as a CUDA graph ({reason}): it runs "
                "without, slower but correct",
                f"模型的一次计算无法录制为 CUDA 图（{reason}）：将不使用它，较慢但结果正确",
            )
        )


class _OneShape:
    """The places of the arguments, and the function recorded on them."""

    def __init__(
        self, function: Callable[..., tuple[Tensor, ...]], arguments: tuple[Tensor, ...]
    ) -> None:
        self._places = [one.clone() for one in arguments]
        self._results: tuple[Tensor, ...] = ()

        def run() -> None:
            self._results = function(*self._places)

        self._play = Recording(run, arguments[0].device)

    def __call__(self, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        for place, one in zip(self._places, arguments, strict=True):
            place.copy_(one)
        self._play()
        return tuple(one.clone() for one in self._results)
