"""Builds the table of `headwise compare parallel`: a row for each model and decoding, with the
batch size at which the baseline catches up with a parallel model (the crossing).

    crossing   the smallest measured batch size at which, and at all larger ones, greedy search of
               the baseline is at least as fast as this row

A parallel model needs fewer steps, but computes more in each of them. At batch size 1 the steps
decide, and in large batches the computation does. So a speed-up means little without its batch size
(Helcl et al. 2022, "Non-autoregressive machine translation: it's not that fast as it seems").

Tested with a table made by hand: crossings, cells, JSON.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headwise.evaluation.translation import TranslationScores
from headwise.language import say

TrainedOn = Literal["distilled", "raw", "both", "unknown"]


@dataclass(frozen=True)
class ParallelRow:
    """One model with one decoding: quality and speed."""

    model: str
    decoding: str
    is_parallel: bool
    trained_on: TrainedOn
    num_parameters: int
    scores: TranslationScores
    repetition_rate: float
    length_error: float
    latency: float
    """Seconds from one text to its translation: the median over sentences and rounds."""
    sentences_per_second: Mapping[int, float]
    """By batch size."""

    def as_dict(self) -> dict[str, Any]:
        scores = self.scores
        return {
            "model": self.model,
            "decoding": self.decoding,
            "parallel": self.is_parallel,
            "trained_on": self.trained_on,
            "parameters": self.num_parameters,
            "bleu": scores.bleu.as_dict(),
            "chrf": scores.chrf.as_dict(),
            "repetition_rate": self.repetition_rate,
            "length_error": self.length_error,
            "latency_seconds": self.latency,
            "sentences_per_second": {
                str(size): speed for size, speed in self.sentences_per_second.items()
            },
        }


@dataclass(frozen=True)
class ParallelComparison:
    """All rows, and the conditions under which they were measured."""

    machine: Mapping[str, Any]
    precision: str
    rounds: int
    source: str
    target: str
    test: str
    """Where the test sentences come from."""
    num_sentences: int
    num_timed: Mapping[int, int]
    """Sentences that were timed, by batch size."""
    baseline: str
    """The first autoregressive model."""
    rows: tuple[ParallelRow, ...]
    left_out: tuple[str, ...] = ()
    """Which other programs are not among the rows, and why."""

    @property
    def batches(self) -> tuple[int, ...]:
        return tuple(sorted({size for row in self.rows for size in row.sentences_per_second}))

    @property
    def baseline_greedy(self) -> ParallelRow:
        """The row that parallel rows are compared with: the first of the baseline."""
        return next(row for row in self.rows if row.model == self.baseline)

    def crossing(self, row: ParallelRow) -> int | None:
        """From which batch size the baseline's greedy search is at least as fast as this row."""
        return crossing(self.baseline_greedy.sentences_per_second, row.sentences_per_second)

    def as_dict(self) -> dict[str, Any]:
        return {
            "machine": dict(self.machine),
            "precision": self.precision,
            "rounds": self.rounds,
            "languages": [self.source, self.target],
            "test": self.test,
            "sentences": self.num_sentences,
            "timed_sentences": {str(size): count for size, count in self.num_timed.items()},
            "baseline": self.baseline,
            "batches": list(self.batches),
            "left_out": list(self.left_out),
            "rows": [
                {**row.as_dict(), "overtaken_at": self.crossing(row) if row.is_parallel else None}
                for row in self.rows
            ],
        }

    def headings(self) -> tuple[str, ...]:
        return (
            say("model", "模型"),
            say("decoding", "解码"),
            say("trained on", "训练数据"),
            say("parameters", "参数"),
            "BLEU",
            "chrF",
            say("repeated", "重复率"),
            say("length error", "长度误差"),
            say("latency, ms", "延迟，毫秒"),
            *(say(f"sentences/s at {size}", f"批 {size} 句/秒") for size in self.batches),
            say("overtaken at", "被反超的批大小"),
        )

    def cells(self) -> list[tuple[str, ...]]:
        """The rows as text."""
        return [self._cells(row) for row in self.rows]

    def _cells(self, row: ParallelRow) -> tuple[str, ...]:
        found = self.crossing(row) if row.is_parallel else None
        return (
            row.model,
            row.decoding,
            say(*TRAINED_ON[row.trained_on]),
            f"{row.num_parameters:,}",
            f"{row.scores.bleu.value:.1f}",
            f"{row.scores.chrf.value:.1f}",
            f"{100 * row.repetition_rate:.2f} %",
            f"{100 * row.length_error:.1f} %",
            f"{1000 * row.latency:,.1f}",
            *(show_speed(row.sentences_per_second.get(size)) for size in self.batches),
            "–" if found is None else str(found),
        )

    def remarks(self) -> list[str]:
        """How the numbers were measured."""
        parts = ", ".join(f"{size}: {count:,}" for size, count in self.num_timed.items())
        facts = " · ".join(f"{key} {value}" for key, value in self.machine.items())
        return [
            say(
                f"{self.num_sentences:,} sentences of {self.test}, {self.source} → {self.target}; "
                f"{self.baseline_greedy.scores.bleu.signature}",
                f"{self.test} 的 {self.num_sentences:,} 句，{self.source} → {self.target}；"
                f"{self.baseline_greedy.scores.bleu.signature}",
            ),
            say(
                f"Times are from text to text, medians of {self.rounds} rounds in which the rows "
                f"take turns, after a warm-up; sentences by batch size: {parts}.",
                f"用时从文本到文本，各行轮流测 {self.rounds} 轮取中位数，先预热；"
                f"各批大小所用句数：{parts}。",
            ),
            say(
                f"overtaken at: the measured batch size from which greedy search of "
                f"{self.baseline} is at least as fast; – if it is slower at the largest one.",
                f"被反超的批大小：自该批大小起，{self.baseline} 的贪心搜索至少同样快；"
                "若在最大的批仍较慢则为 –。",
            ),
            *(say(f"left out: {one}", f"未包括：{one}") for one in self.left_out),
            f"{facts} · {self.precision}",
        ]


TRAINED_ON: Mapping[str, tuple[str, str]] = {
    "distilled": ("distilled", "蒸馏"),
    "raw": ("raw", "原始"),
    "both": ("raw + distilled", "原始 + 蒸馏"),
    "unknown": ("unknown", "未知"),
}


def crossing(baseline: Mapping[int, float], other: Mapping[int, float]) -> int | None:
    """The smallest batch size from which on `baseline` is at least as fast at every size measured
    with both; None if it is slower at the largest.
    """
    found = None
    for size in sorted(baseline.keys() & other.keys(), reverse=True):
        if baseline[size] < other[size]:
            break
        found = size
    return found


def show_speed(speed: float | None) -> str:
    """Sentences a second with about three digits."""
    if speed is None:
        return "–"
    return f"{speed:,.0f}" if speed >= 100 else f"{speed:.3g}"


def as_markdown(result: ParallelComparison) -> str:
    """The table for a report."""
    table: Sequence[tuple[str, ...]] = (
        result.headings(),
        tuple("---" for _ in result.headings()),
        *result.cells(),
    )
    lines = [f"| {' | '.join(cell.replace('|', '¦') for cell in row)} |" for row in table]
    return "\n".join([*lines, "", *(f"- {line}" for line in result.remarks())]) + "\n"


def default_name(path: Path) -> str:
    """What a model is called in the table: the name of its run or directory."""
    path = path.absolute()
    return path.parent.name if path.name == "model" else path.name
