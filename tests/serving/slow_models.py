"""A translator whose steps take some time and are counted."""

import time
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from headwise.decoding.stepper import Stepper
from headwise.serving.work.loaded_models import LoadedModel, load_models
from tests.serving.conftest import BUNDLE


class SlowStepper:
    def __init__(self, inner: Stepper[Any], seconds: float) -> None:
        self.inner, self.seconds, self.num_steps = inner, seconds, 0
        self.device = inner.device

    def start(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int) -> Any:
        return self.inner.start(sources, width=width, max_length=max_length)

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        time.sleep(self.seconds)
        self.num_steps += 1
        return self.inner.step(state, tokens)

    def reorder(self, state: Any, index: Tensor) -> Any:
        return self.inner.reorder(state, index)


def slow_models(seconds: float) -> tuple[dict[str, LoadedModel], SlowStepper]:
    """A model under the name tiny, and its slow stepper."""
    models = load_models([f"tiny={BUNDLE}"], device="cpu", precision="fp32")
    stepper = SlowStepper(models["tiny"].value.offer.stepper(attending=False), seconds)
    models["tiny"].value.offer.stepper = lambda *, attending: stepper
    return models, stepper
