"""The numbers between two lines of the log: sums kept on the device, read when a line is due."""

from dataclasses import dataclass
from typing import Any, ClassVar

from headwise.errors import HeadwiseError


@dataclass(frozen=True)
class Window:
    """Sums since the last line, then totals since the beginning; the fields are the entries of the device's vector."""

    loss: float
    negative_log_likelihood: float
    target_tokens: float
    gradient_norm: float
    updates: float
    skipped: float
    skipped_in_a_row: float
    total_tokens: float
    total_skipped: float

    NUM_SINCE_LINE: ClassVar[int] = 6
    NUM_ALL: ClassVar[int] = 9

    @property
    def mean_loss(self) -> float | None:
        return self.loss / max(self.target_tokens, 1) if self.updates else None

    def entries(self) -> dict[str, Any]:
        """What a line of the log says of them: means over target tokens, or over updates for the gradient's norm."""
        tokens, measured = max(self.target_tokens, 1), self.updates > 0
        return {
            "loss": self.mean_loss,
            "nll": self.negative_log_likelihood / tokens if measured else None,
            "gradient_norm": self.gradient_norm / self.updates if measured else None,
            "target_tokens": int(self.target_tokens),
            "total_tokens": int(self.total_tokens),
            "skipped": int(self.skipped),
        }

    def check(self, *, step: int, max_skipped: int) -> None:
        """Give up when too many updates in a row had to be skipped."""
        count = int(self.skipped_in_a_row)
        if count >= max_skipped:
            raise HeadwiseError(
                f"loss or gradient was not finite in {count} updates in a row (up to step {step}), none was applied; the last "
                "checkpoint is good: lower the learning rate, use a longer warm-up or training.precision=fp32",
                f"连续 {count} 次更新（至第 {step} 步）的损失或梯度不是有限数，均未应用；上一个检查点完好："
                "请降低学习率、延长预热，或使用 training.precision=fp32",
            )
