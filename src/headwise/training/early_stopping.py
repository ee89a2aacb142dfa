"""Stops a training early, and remembers the best validation so far: one validation metric decides
both.

A task declares whether its metric is better when lower or when higher
(tasks/declared_results.py). Where nothing is declared, the name tells: with loss, likelihood,
perplexity or error in it lower is better, with any other name higher. Training stops after
`patience` validations in a row without a better value (Prechelt 1998).
"""

import math
from collections.abc import Mapping
from typing import Literal

from headwise.errors import UsageError
from headwise.settings import Settings

Better = Literal["higher", "lower"]
"""Which way a metric is better."""
LOWER_IS_BETTER = ("loss", "likelihood", "perplexity", "error")


class Best(Settings):
    """The best validation so far."""

    step: int
    value: float


class Selection(Settings):
    """The results of validations so far; `after` returns the state after one more."""

    metric: str
    step: int = 0
    """The step of the last validation."""
    best: Best | None = None
    num_without_improvement: int = 0

    def after(
        self, step: int, metrics: Mapping[str, float], *, better: Better | None = None
    ) -> "Selection":
        if self.metric not in metrics:
            raise UsageError(
                f"training.keep.best is {self.metric!r}, but validation measures "
                f"{', '.join(metrics) or 'nothing'}; choose one of those",
                f"training.keep.best 为 {self.metric!r}，但验证得到的是 "
                f"{', '.join(metrics) or '（无）'}；请从中选择",
            )
        value = metrics[self.metric]
        if math.isfinite(value) and (
            self.best is None
            or is_better(value, than=self.best.value, better=better or guess_better(self.metric))
        ):
            return Selection(metric=self.metric, step=step, best=Best(step=step, value=value))
        return self.model_copy(
            update={"step": step, "num_without_improvement": self.num_without_improvement + 1}
        )


def guess_better(metric: str) -> Better:
    """Which way a metric of this name is better."""
    return "lower" if any(word in metric.lower() for word in LOWER_IS_BETTER) else "higher"


def is_better(value: float, *, than: float, better: Better) -> bool:
    return value < than if better == "lower" else value > than
