"""Sums the losses and counts for the next line of `log.jsonl`, on the device.

Reading a number from a GPU waits for all work in flight. So updates only add to one vector on the
device (`DeviceSums`), which is read when a line is due. `LogWindow` is that vector as a value: the
sums since the last line, then totals, then what the objective measures besides (`Measuring` in
updates.py): a sum and a count for each of its words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import torch
from torch import Tensor

from headwise.errors import HeadwiseError


@dataclass(frozen=True)
class LogWindow:
    """Sums over the updates since the last line of the log, then totals of the whole run.

    A checkpoint stores the numbers in the order of these fields.
    """

    loss: float
    negative_log_likelihood: float
    target_tokens: float
    gradient_norm: float
    updates: float
    skipped: float
    skipped_in_a_row: float
    total_tokens: float
    total_skipped: float
    measured: Mapping[str, float | None] = field(default_factory=dict)
    """Means of what the objective measures, by its words; None: nothing yet."""

    @property
    def mean_loss(self) -> float | None:
        return self.loss / max(self.target_tokens, 1) if self.updates else None

    def entries(self) -> dict[str, Any]:
        """Entries of a log line: means over target tokens; over updates for the gradient norm."""
        tokens, measured = max(self.target_tokens, 1), self.updates > 0
        return {
            "loss": self.mean_loss,
            "nll": self.negative_log_likelihood / tokens if measured else None,
            "gradient_norm": self.gradient_norm / self.updates if measured else None,
            "target_tokens": int(self.target_tokens),
            "total_tokens": int(self.total_tokens),
            "skipped": int(self.skipped),
            **self.measured,
        }

    def check(self, *, step: int, max_skipped: int) -> None:
        """Raise if too many updates in a row had to be skipped."""
        count = int(self.skipped_in_a_row)
        if count >= max_skipped:
            raise HeadwiseError(
                f"loss or gradient was not finite in {count} updates in a row (up to step {step}), "
                "none was applied; the last checkpoint is good: lower the learning rate, use a "
                "longer warm-up or training.precision=fp32",
                f"连续 {count} 次更新（至第 {step} 步）的损失或梯度不是有限数，均未应用；"
                "上一个检查点完好：请降低学习率、延长预热，或使用 training.precision=fp32",
            )


FIELDS = tuple(one.name for one in fields(LogWindow) if one.name != "measured")
IN_A_ROW = FIELDS.index("skipped_in_a_row")
TOTALS = ("skipped_in_a_row", "total_tokens", "total_skipped")
"""The fields that are not set to zero when a new line begins; they come last."""
NUM_SINCE_LINE = len(FIELDS) - len(TOTALS)
NUM_LOSS_SUMS = 3
"""Loss, likelihood and tokens, with which the fields begin."""


class DeviceSums:
    """A LogWindow as one float64 vector on the device; `words`: what the objective measures."""

    def __init__(self, device: torch.device, words: Sequence[str] = ()) -> None:
        self.words = tuple(words)
        self._vector = torch.zeros(
            len(FIELDS) + 2 * len(self.words), dtype=torch.float64, device=device
        )

    @torch.no_grad()
    def add(self, sums: Tensor, norm: Tensor, *, skip: Tensor) -> None:
        """Add one update: `sums` are loss, likelihood and tokens, then sum and count of each word;
        a skipped update only counts."""
        skipped = skip.double()
        sums, besides = sums[:NUM_LOSS_SUMS], torch.where(skip, 0.0, sums[NUM_LOSS_SUMS:])
        measured = torch.where(skip, 0.0, torch.cat([sums, norm.double().reshape(1)]))
        in_a_row = self._vector[IN_A_ROW]
        counts = {
            "updates": 1 - skipped,
            "skipped": skipped,
            "skipped_in_a_row": (in_a_row + 1) * skipped - in_a_row,
            "total_tokens": measured[FIELDS.index("target_tokens")],
            "total_skipped": skipped,
        }
        assert FIELDS[len(measured) :] == tuple(counts), "counts follow the measured sums"
        self._vector += torch.cat([measured, torch.stack(list(counts.values())), besides])

    def read(self) -> LogWindow:
        """Wait for the device and read the sums."""
        numbers = self._vector.tolist()
        besides = numbers[len(FIELDS) :]
        means = {
            word: total / count if count else None
            for word, total, count in zip(self.words, besides[::2], besides[1::2], strict=True)
        }
        own = dict(zip(FIELDS, numbers[: len(FIELDS)], strict=True))
        return LogWindow(**own, measured=means)

    def start_window(self) -> None:
        """Set the sums since the last line to zero; the totals stay."""
        self._vector[:NUM_SINCE_LINE] = 0
        self._vector[len(FIELDS) :] = 0

    def to_list(self) -> list[float]:
        return self._vector.tolist()

    def restore(self, numbers: list[float]) -> None:
        """Continue from the numbers of a checkpoint."""
        assert len(numbers) == len(self._vector), "a run keeps its objective"
        self._vector.copy_(torch.tensor(numbers, dtype=torch.float64))
