"""Filters that decide which sentence pairs are kept for training, and a report of the dropped ones.

Each filter has a name; the report counts the dropped pairs of each filter and keeps a few examples
with file and line. Duplicates are found by 64-bit hashes: 8 bytes a pair (0.8 GB for 100 million,
0.4 GB more while sorted runs are merged), with a probability of about n²/2⁶⁵ (0.03 % for 100
million pairs) that a unique pair is dropped.

Tested against: corpora with a known number of each defect, and a Python set for the duplicates.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pydantic

from headwise.data.pairs.parallel_files import Pair
from headwise.language import say
from headwise.settings import Settings
from headwise.text.cleaning import clean_line, has_control_characters

MAX_EXAMPLES = 3
_SHOWN_CHARACTERS = 60
_RATIO_ALLOWANCE = 4


class FilterSettings(Settings):
    """Pairs to leave out of training.

    Empty lines and pairs longer than a row are always left out.
    """

    max_tokens: int | None = pydantic.Field(default=None, ge=1)
    """Longest side in tokens; null: what fits a row."""
    max_ratio: float | None = pydantic.Field(default=4.0, ge=1.0)
    """The longer side has at most this many times the tokens of the shorter; 4 is added to both so
    that short sentences pass."""
    max_characters: int = pydantic.Field(default=2000, ge=1, le=60_000)
    """Longest side in characters."""
    drop_duplicates: bool = True
    """Keep the first of equal pairs, over all corpora."""
    drop_identical: bool = True
    """Leave out pairs whose target equals the source: they would train copying."""
    drop_leaked: bool = False
    """Leave out pairs of which one side occurs in data.valid or data.test (compared by letters and
    digits)."""


KEEP_ALL = FilterSettings(max_ratio=None, drop_duplicates=False, drop_identical=False)
"""For validation and test: keep everything that can be read and fits a row."""

REASONS = {
    "empty": ("one side is empty", "一侧为空"),
    "long_line": ("line longer than 64 KiB", "行超过 64 KiB"),
    "missing_column": ("too few columns", "列数不足"),
    "control_characters": ("control characters (NUL, escape …)", "含控制字符（NUL 等）"),
    "identical": ("target equals source", "两侧相同"),
    "max_characters": ("too many characters", "字符过多"),
    "duplicate": ("seen before", "重复"),
    "leaked": ("one side stands in validation or test", "一侧出现在验证集或测试集中"),
    "max_tokens": (
        "longer than a row or data.filter.max_tokens",
        "超过一行或 data.filter.max_tokens",
    ),
    "max_ratio": (
        "lengths too different (data.filter.max_ratio)",
        "长度相差过大（data.filter.max_ratio）",
    ),
}


@dataclass(frozen=True)
class Example:
    file: str
    line: int
    source: str
    target: str


@dataclass
class FilterReport:
    """How many pairs were read and kept, and how many each filter dropped, with examples."""

    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Example]] = field(default_factory=dict)

    def drop(self, reason: str, pair: Pair) -> None:
        assert reason in REASONS
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        shown = self.examples.setdefault(reason, [])
        if len(shown) < MAX_EXAMPLES:
            cut = slice(_SHOWN_CHARACTERS)
            shown.append(
                Example(
                    pair.file, pair.line, clean_line(pair.source[cut]), clean_line(pair.target[cut])
                )
            )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "FilterReport":
        examples = {
            reason: [Example(**entry) for entry in entries]
            for reason, entries in data["examples"].items()
        }
        return cls(data["read"], data["kept"], data["dropped"], examples)

    def describe(self) -> str:
        """The report as text in the current language."""
        lines = [
            say(
                f"read {self.read:,} pairs, kept {self.kept:,}",
                f"读入 {self.read:,} 对，保留 {self.kept:,} 对",
            )
        ]
        for reason, count in sorted(self.dropped.items(), key=lambda item: -item[1]):
            lines.append(
                say(
                    f"  {count:,} dropped: {REASONS[reason][0]}",
                    f"  去除 {count:,} 对：{REASONS[reason][1]}",
                )
            )
            if reason != "duplicate":  # nothing is wrong with a pair that was kept the first time
                lines += [
                    f"    {e.file}:{e.line}: {e.source!r} | {e.target!r}"
                    for e in self.examples[reason]
                ]
        return "\n".join(lines)


def check_text(pair: Pair, settings: FilterSettings) -> tuple[str | None, Pair]:
    """Apply the filters on text: the name of the first that drops the pair, and the cleaned
    pair.
    """
    if pair.problem is not None:
        return pair.problem, pair
    if has_control_characters(pair.source) or has_control_characters(pair.target):
        return "control_characters", pair
    source, target = clean_line(pair.source), clean_line(pair.target)
    # Most lines are clean, and creating a new pair costs time.
    if source is not pair.source or target is not pair.target:
        pair = pair._replace(source=source, target=target)
    if not source or not target:
        return "empty", pair
    if max(len(source), len(target)) > settings.max_characters:
        return "max_characters", pair
    if settings.drop_identical and source == target:
        return "identical", pair
    return None, pair


@dataclass(frozen=True)
class LengthLimits:
    """Most tokens of each side, without the end of sentence."""

    source: int
    target: int


def check_lengths(
    source: int, target: int, *, limits: LengthLimits, max_ratio: float | None
) -> str | None:
    """Apply the filters on token counts."""
    if source > limits.source or target > limits.target:
        return "max_tokens"
    if source == 0 or target == 0:
        return "empty"
    shorter, longer = sorted((source, target))
    if max_ratio is not None and longer + _RATIO_ALLOWANCE > max_ratio * (
        shorter + _RATIO_ALLOWANCE
    ):
        return "max_ratio"
    return None


def hash_pair(pair: Pair) -> int:
    """A stable 64-bit hash of both sentences."""
    text = f"{pair.source}\x1f{pair.target}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


MAX_RUN = 1 << 24
"""Longer runs are not merged: merging needs memory for 1.5 copies, which must stay bounded."""


class SeenHashes:
    """A set of 64-bit numbers in sorted runs of doubling size: 8 bytes each, looked up in
    blocks.
    """

    def __init__(self) -> None:
        self._runs: list[np.ndarray] = []

    def add(self, hashes: Sequence[int] | np.ndarray) -> np.ndarray:
        """Add the numbers; returns True for each that is new, also within this block."""
        values = np.asarray(hashes, dtype=np.uint64)
        unique, first = np.unique(values, return_index=True)
        known = np.zeros(len(unique), dtype=bool)
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, unique), len(run) - 1)
            known |= run[places] == unique
        new = np.zeros(len(values), dtype=bool)
        new[first[~known]] = True
        if not known.all():
            self._insert(unique[~known])
        return new

    def _insert(self, run: np.ndarray) -> None:
        while (
            self._runs
            and len(self._runs[-1]) <= 2 * len(run)
            and len(self._runs[-1]) + len(run) <= MAX_RUN
        ):
            run = np.concatenate([self._runs.pop(), run])
            run.sort(kind="stable")
        self._runs.append(run)
