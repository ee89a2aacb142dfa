"""Writes the numbers of log.jsonl as TensorBoard events, if the recipe asks for them.

TensorBoard is an optional dependency.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headwise.errors import UsageError


def require_tensorboard() -> Any:
    """The writer of events; refused if TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UsageError(
            "training.tensorboard is true, but TensorBoard is not installed; pip install "
            "'headwise[tensorboard]' or set training.tensorboard=false",
            "training.tensorboard 为 true，但未安装 TensorBoard；请 pip install "
            "'headwise[tensorboard]'，或设 training.tensorboard=false",
        ) from error
    return SummaryWriter


class Board:
    """Writes the numeric entries of log lines as `train/loss`, `valid/bleu` and so on."""

    def __init__(self, path: Path, *, step: int) -> None:
        # Events after the resumed step belong to work that was lost.
        self._writer = require_tensorboard()(str(path), purge_step=step + 1)

    def write(self, line: Mapping[str, Any]) -> None:
        for name, value in line.items():
            if name != "step" and isinstance(value, int | float):
                self._writer.add_scalar(f"{line['kind']}/{name}", value, line["step"])

    def close(self) -> None:
        self._writer.close()
