"""Computes scores of classification and tagging: accuracy, and precision, recall and F1 of each
class.

    accuracy = correct / all
    precision = correct / predicted      recall = correct / gold      F1 = 2 P R / (P + R)

Accuracy hides a rare class that is never predicted; the mean F1 over classes (macro F1) does not.
`LabelStatistics` is what each text adds to the accuracy, for bootstrap intervals. Tested against:
counts by hand.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ClassScore:
    """Counts of one class."""

    label: str
    num_right: int
    num_named: int
    num_there: int

    @property
    def precision(self) -> float:
        return self.num_right / self.num_named if self.num_named else 0.0

    @property
    def recall(self) -> float:
        return self.num_right / self.num_there if self.num_there else 0.0

    @property
    def f1(self) -> float:
        total = self.num_named + self.num_there
        return 2 * self.num_right / total if total else 0.0

    def as_dict(self) -> dict[str, Any]:
        scores = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {
            "label": self.label,
            "count": self.num_there,
            **{name: round(one, 6) for name, one in scores.items()},
        }


@dataclass(frozen=True)
class CutTexts:
    """Texts that were cut: how many, and how many tokens of the longest were read."""

    num_texts: int = 0
    num_read: int = 0
    num_tokens: int = 0


@dataclass(frozen=True)
class LabelScores:
    """The scores of all classes, the most frequent first."""

    classes: tuple[ClassScore, ...]
    cut: CutTexts = CutTexts()

    @property
    def num_labels(self) -> int:
        return sum(one.num_there for one in self.classes)

    @property
    def accuracy(self) -> float:
        return sum(one.num_right for one in self.classes) / max(self.num_labels, 1)

    @property
    def macro_f1(self) -> float:
        """The mean over the classes of the gold labels."""
        there = [one.f1 for one in self.classes if one.num_there]
        return sum(there) / max(len(there), 1)

    def as_dict(self) -> dict[str, Any]:
        return {
            "accuracy": round(self.accuracy, 6),
            "labels": self.num_labels,
            "macro_f1": round(self.macro_f1, 6),
            "classes": [one.as_dict() for one in self.classes],
        }


def score_labels(
    gold: Sequence[str], found: Sequence[str], *, cut: CutTexts = CutTexts()
) -> LabelScores:
    """Compare labels; a class that was only predicted has a row too."""
    there, named = Counter(gold), Counter(found)
    right = Counter(one for one, other in zip(gold, found, strict=True) if one == other)
    names = sorted(there | named, key=lambda name: (-there[name], name))
    return LabelScores(
        tuple(ClassScore(name, right[name], named[name], there[name]) for name in names), cut
    )


@dataclass(frozen=True)
class LabelStatistics:
    """Correct labels and all labels, a row for each text (several_seeds.Statistics)."""

    rows: NDArray[np.float64]

    @staticmethod
    def of(found: Sequence[Sequence[str]], given: Sequence[Sequence[str]]) -> "LabelStatistics":
        rows = [
            (sum(one == other for one, other in zip(mine, theirs, strict=True)), len(theirs))
            for mine, theirs in zip(found, given, strict=True)
        ]
        return LabelStatistics(np.array(rows, dtype=np.float64))

    def score_sums(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Accuracy in percent."""
        right, there = sums.T
        return 100 * right / np.maximum(there, 1)
