"""Holds and checks the options of `headwise exposure`, which measures what a mistake costs a
translator.

Nothing here loads torch.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headwise.comparing.given_pairs import check_both_given
from headwise.errors import UsageError

if TYPE_CHECKING:
    from headwise.models.inference import Precision
    from headwise.tasks.translation.wrong_prefix import WrongTokens
    from headwise.training.precision import Device

MAX_TOKENS, MAX_POSITIONS = 20, 500


@dataclass(frozen=True)
class ExposureRequest:
    """What is to be measured, and how."""

    models: tuple[Path, ...]
    source: Path | None = None
    reference: Path | None = None
    wrong: "WrongTokens" = "frequent"
    tokens: int = 1
    """Wrong tokens at the beginning of each translation."""
    seed: int = 1
    positions: int = 20
    """Positions at which the decoder is compared."""
    sentences: int | None = None
    """The first so many pairs of the test set; None: all."""
    device: "Device" = "auto"
    precision: "Precision" = "auto"

    def check(self) -> None:
        """Refuse what cannot be answered, before a model is loaded."""
        check_both_given(self.source, self.reference)
        for option, value, most in (
            ("--tokens", self.tokens, MAX_TOKENS),
            ("--positions", self.positions, MAX_POSITIONS),
        ):
            if not 1 <= value <= most:
                raise UsageError(
                    f"{option} {value} is not usable; give a whole number from 1 to {most}",
                    f"{option} {value} 不可用；请给出 1 到 {most} 的整数",
                )
