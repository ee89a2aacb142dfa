"""Holds and checks the options of `headwise compare parallel`, which compares translators that
write all words at once (parallel ones) with those that write word by word.

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

BATCHES = (1, 8, 64)
ROUNDS = 3
MAX_BATCH = 4096


@dataclass(frozen=True)
class ParallelRequest:
    """What is to be compared, and how."""

    models: tuple[Path, ...]
    source: Path | None = None
    reference: Path | None = None
    decodings: tuple[str, ...] = ()
    """More decodings, for each model that they fit."""
    batches: tuple[int, ...] = BATCHES
    rounds: int = ROUNDS
    device: "Device" = "auto"
    precision: "Precision" = "auto"

    def check(self) -> None:
        """Refuse what cannot be answered, before a model is loaded."""
        if not self.models:
            raise UsageError(
                "`compare parallel` was given no model; name finished translators: headwise "
                "compare parallel runs/teacher runs/student",
                "`compare parallel` 没有给出模型；请给出训练好的翻译模型：headwise compare "
                "parallel runs/teacher runs/student",
            )
        check_both_given(self.source, self.reference)
        if not self.batches or not 1 <= min(self.batches) <= max(self.batches) <= MAX_BATCH:
            raise UsageError(
                f"batch sizes {list(self.batches)} are not usable; give whole numbers from 1 to "
                f"{MAX_BATCH:,}: --batches 1,8,64",
                f"批大小 {list(self.batches)} 不可用；请给出 1 到 {MAX_BATCH:,} 的整数："
                "--batches 1,8,64",
            )
        self._check_twice()

    def _check_twice(self) -> None:
        places = [model.resolve() for model in self.models]
        for model, place in zip(self.models, places, strict=True):
            if places.count(place) > 1:
                raise UsageError(
                    f"{model} was given twice; name each model once (more ways to search: "
                    "--decoding)",
                    f"{model} 给出了两次；每个模型只写一次（更多搜索方式：--decoding）",
                )
