"""`Measurement`: what `headwise evaluate` is asked to measure, with a check of its options.

Nothing here loads torch.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.errors import UsageError

if TYPE_CHECKING:
    from headwise.decoding.ensemble import Mean
    from headwise.models.inference import Precision
    from headwise.tasks.checkpoint_bundle import Which
    from headwise.training.precision import Device


@dataclass(frozen=True)
class Measurement:
    """What is to be measured: a model with its source, or ready hypotheses, against references."""

    reference: Path
    source: Path | None = None
    model: Path | None = None
    others: tuple[Path, ...] = ()
    """Models that translate together with it, as an ensemble."""
    mean: "Mean" = "probabilities"
    """What an ensemble averages."""
    checkpoint: "Which | None" = None
    """Of a run that is not finished: which of its weights."""
    hypothesis: Path | None = None
    against: Path | None = None
    """A second model or hypothesis file: the baseline of a paired test."""
    output: Path | None = None
    target_language: str | None = None
    pretokenized: bool = False
    lowercase: bool = False
    overrides: tuple[str, ...] = ()
    device: "Device" = "auto"
    precision: "Precision" = "auto"

    @property
    def system(self) -> Path:
        """The model or the file of hypotheses that is measured."""
        system = self.model or self.hypothesis
        if system is None or (self.model is not None and self.hypothesis is not None):
            raise UsageError(
                "give either --model (with --source) or --hypothesis, one of them",
                "请在 --model（配合 --source）与 --hypothesis 中给出一个",
            )
        return system

    def is_model(self, system: Path) -> bool:
        """A directory is a model, anything else a file of translations."""
        return system == self.model or system.is_dir()

    def check(self) -> None:
        """Refuse a question that cannot be answered."""
        measured = self.system
        if self.checkpoint is not None and self.model is None:
            raise UsageError(
                f"--checkpoint {self.checkpoint} was given without --model; give the run: --model "
                "runs/mine",
                f"给出了 --checkpoint {self.checkpoint} 却没有 --model；请给出运行目录：--model "
                "runs/mine",
            )
        for system in (measured, self.against):
            if system is not None and self.is_model(system) and self.source is None:
                raise UsageError(
                    f"{system} is a model, so --source is needed: the text it shall translate",
                    f"{system} 是模型，因此需要 --source：要翻译的文本",
                )
