"""Proposes smaller batches, and more of them per update, if a step does not fit into memory.

    training.batch_tokens / p,  training.accumulation · p:   the same updates,
                                                             1/p of the activations

Several devices share the batches of an update, each in as few batches as possible
(data/batching.py), so the batch of a device shrinks only if there are more batches than devices.
Tested against: the proposed settings fit when they are planned themselves.
"""

from dataclasses import dataclass

from headwise.planning.cost_prediction import MemoryParts
from headwise.planning.hardware import GIB

MARGIN_OF_MEMORY = 0.15
"""How far measurements may be from a prediction (benchmarks/bench_plan.py)."""


@dataclass(frozen=True)
class Proposal:
    """The largest batch that fits, and its memory; None if not even one row fits."""

    batch_tokens: int | None
    accumulation: int
    total: int
    parts: int = 1

    def describe(self) -> tuple[str, str]:
        """What to do, in English and Chinese."""
        total = f"{self.total / GIB:.1f} GiB"
        if self.batch_tokens is None:
            return (
                f"weights, gradients and optimiser alone take {total}, so a smaller batch is not "
                "enough: lower model.dim, the layers or text.size, or use a machine with more "
                "memory",
                f"仅权重、梯度与优化器就占 {total}，减小批次也不够：请减小 model.dim、层数或 "
                "text.size，或换内存更大的机器",
            )
        settings = (
            f"training.batch_tokens={self.batch_tokens} training.accumulation={self.accumulation}"
        )
        cut = "halve the batch" if self.parts == 2 else f"cut the batch into {self.parts:,} parts"
        cut_zh = "请把批次减半" if self.parts == 2 else f"请把批次分成 {self.parts:,} 份"
        return (
            f"{cut}: {settings} learns the same with about {total}, and training.recompute=blocks "
            "takes less still",
            f"{cut_zh}：{settings} 训练效果不变，约需 {total}；training.recompute=blocks 更省",
        )


def propose(
    memory: MemoryParts,
    *,
    rows: int,
    row_tokens: int,
    accumulation: int,
    room: float,
    loss_space: int,
    devices: int = 1,
    sharded: bool = False,
) -> Proposal:
    """Halve the batch and double the accumulation until it fits.

    `memory` is that of the whole batch on one device; `loss_space` the most that a chunk of the
    loss takes; the rest of the work space shrinks with the batch.
    """
    gradients = memory.optimizer // 2  # they stay from batch to batch
    fixed = (memory.fixed + gradients) // (devices if sharded else 1)
    chunk = min(memory.workspace, loss_space)
    parts = 2
    while parts <= rows:
        of_device = -(-accumulation * parts // devices)
        batch = (
            (memory.workspace - chunk + memory.activations) * accumulation // (of_device * devices)
        )
        total = fixed + chunk + batch
        if total <= (1 - MARGIN_OF_MEMORY) * room:
            return Proposal(-(-rows // parts) * row_tokens, accumulation * parts, total, parts)
        parts *= 2
    return Proposal(None, accumulation, fixed)
