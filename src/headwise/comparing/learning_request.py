"""Holds and checks the options of `headwise compare learning`, which compares translators that
learnt from other things than right words alone.

Nothing here loads torch.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.comparing.given_pairs import check_both_given
from headwise.errors import UsageError

if TYPE_CHECKING:
    from headwise.models.inference import Precision
    from headwise.training.precision import Device


@dataclass(frozen=True)
class LearningRequest:
    """What is to be compared."""

    models: tuple[Path, ...]
    """The first is the baseline."""
    source: Path | None = None
    reference: Path | None = None
    device: "Device" = "auto"
    precision: "Precision" = "auto"

    def check(self) -> None:
        """Refuse what cannot be answered, before a model is loaded."""
        if len(self.models) < 2:
            raise UsageError(
                "`compare learning` needs two models or more, the baseline first: headwise compare "
                "learning runs/teacher-forcing runs/scheduled-sampling",
                "`compare learning` 需要两个或更多模型，基线在前：headwise compare learning "
                "runs/teacher-forcing runs/scheduled-sampling",
            )
        check_both_given(self.source, self.reference)
        places = [model.resolve() for model in self.models]
        for model, place in zip(self.models, places, strict=True):
            if places.count(place) > 1:
                raise UsageError(
                    f"{model} was given twice; name each model once",
                    f"{model} 给出了两次；每个模型只写一次",
                )
