"""`AdaptationRequest`: what `headwise adapt` is asked for, with a check of its options.

Nothing here loads torch.
"""

from dataclasses import dataclass
from pathlib import Path

from headwise.errors import UsageError


@dataclass(frozen=True)
class AdaptationRequest:
    """What is to be adapted to what."""

    model: Path
    data: tuple[str, ...]
    """Own corpora, written as in data.train of a recipe; a mapping begins with a brace."""
    run: Path
    valid: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    """Held-out own corpora; empty: a part of `data`."""
    general: tuple[str, ...] = ()
    """Corpora of the kind that the model knows already."""
    own_share: float = 0.5
    """Share of own pairs among those that are seen, with general ones."""
    overrides: tuple[str, ...] = ()

    def check(self) -> None:
        if not 0 < self.own_share <= 1:
            raise UsageError(
                f"--own-share is {self.own_share:g}; give a number above 0 and at most 1, e.g. 0.5",
                f"--own-share 为 {self.own_share:g}；请给出大于 0 且不超过 1 的数，例如 0.5",
            )
        if bool(self.valid) != bool(self.test):
            raise UsageError(
                "--valid and --test go together: give both, or none (then parts of --data are "
                "held out)",
                "--valid 与 --test 须同时给出：请都给出，或都不给（此时从 --data 中留出一部分）",
            )
        if (self.run / "model").resolve() == self.model.resolve() or (
            self.run.resolve() == self.model.resolve()
        ):
            raise UsageError(
                f"--run {self.run} is the model that is adapted; give another directory",
                f"--run {self.run} 就是要适应的模型；请给出另一个目录",
            )
