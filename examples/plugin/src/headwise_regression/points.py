"""Points in a text file, and the endless stream of batches that a training reads.

The order of an epoch is a function of (seed, epoch), so that a resumed run goes on exactly.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from headwise.data.batching import ALL_ROWS, Share
from headwise.data.row_stream import batch_rows, endless_rows
from headwise.data.text_lines import read_lines
from headwise.errors import DataError
from headwise.randomness import numpy_generator


@dataclass(frozen=True)
class Points:
    """Inputs [point, column] and the number to be learnt of each."""

    inputs: np.ndarray
    targets: np.ndarray

    def __len__(self) -> int:
        return len(self.targets)


@dataclass(frozen=True)
class PointBatch:
    """Some points as tensors."""

    inputs: Tensor
    targets: Tensor


def read_points(path: Path, num_columns: int | None = None) -> Points:
    """Numbers separated by spaces, a point a line; every line has as many as the first."""
    rows: list[list[float]] = []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            row = [float(word) for word in (line or "").split()]
        except ValueError:
            row = []
        expected = num_columns or len(rows[0] if rows else row)
        if len(row) < 2 or len(row) != expected:
            raise DataError(
                f"has {len(row)} numbers, {max(2, expected)} are needed; mend the line",
                f"有 {len(row)} 个数，需要 {max(2, expected)} 个；请修改该行",
                file=path,
                line=number,
            )
        rows.append(row)
    if not rows:
        raise DataError("is empty; give a file of points", "是空文件；请给出数据点", file=path)
    table = np.array(rows, dtype=np.float32)
    return Points(table[:, :-1], table[:, -1])


@dataclass(frozen=True)
class PointBatches:
    """The training points as one endless stream of batches (training/prefetching.Batches)."""

    points: Points
    size: int
    seed: int
    share: Share = ALL_ROWS

    @property
    def fingerprint(self) -> str:
        content = self.points.inputs.tobytes() + self.points.targets.tobytes()
        return hashlib.sha256(content).hexdigest()[:16]

    def stream(
        self, cursor: Mapping[str, int] | None
    ) -> Iterator[tuple[PointBatch, Mapping[str, int]]]:
        self.share.check(self.size, row_tokens=1)
        return batch_rows(endless_rows(cursor, self._order), self.size, self.share, self._take)

    def _order(self, epoch: int) -> list[int]:
        return numpy_generator(self.seed, "points", epoch).permutation(len(self.points)).tolist()

    def _take(self, rows: Sequence[int]) -> PointBatch:
        chosen = np.array(rows, dtype=np.int64)
        return PointBatch(
            torch.from_numpy(self.points.inputs[chosen]),
            torch.from_numpy(self.points.targets[chosen]),
        )
