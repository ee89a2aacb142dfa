"""How well labels are found: accuracy, and for each class how often it is right when named and how
often it is found.

    accuracy = right / all      precision = right / named      recall = right / there      F1 = 2 P R / (P + R)

Accuracy hides a rare class that is never found; the mean of the classes' F1 (macro) does not.
`LabelStatistics` is what each text or sentence adds to the accuracy, for intervals over draws of
the test set. Tested against: counts by hand.
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
    """Texts that were not read to their end: how many, and of the longest how many tokens were read
    and are there.
    """

    num_texts: int = 0
    num_read: int = 0
    num_tokens: int = 0


@dataclass(frozen=True)
class LabelScores:
    """All classes together, the most frequent first."""

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
        """The mean over classes that are there."""
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
    """Compare label by label; a class that was never there but named has a line too."""
    there, named = Counter(gold), Counter(found)
    right = Counter(one for one, other in zip(gold, found, strict=True) if one == other)
    names = sorted(there | named, key=lambda name: (-there[name], name))
    return LabelScores(
        tuple(ClassScore(name, right[name], named[name], there[name]) for name in names), cut
    )


@dataclass(frozen=True)
class LabelStatistics:
    """Labels found right and labels there, a row for each text or sentence
    (evaluation/several_seeds.Statistics).
    """

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
