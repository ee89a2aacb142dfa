"""Gives 1 to a translation that equals its reference and 0 to any other.

Its mean is the probability of the right translation, so the gradient of the expected reward is that
of this probability, not of its logarithm. Text in which nothing is ever right teaches nothing.
Tested by hand-worked cases.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from headwise.evaluation.rewards.declaration import Reward, RewardKind, TextForm
from headwise.settings.kind import Words


class ExactMatch(RewardKind):
    """1 for the reference itself."""

    title: ClassVar[Words] = ("exact match", "完全一致")
    summary: ClassVar[Words] = (
        "1 if the translation equals the reference apart from spaces at the ends, else 0.",
        "译文与参考相同（不计首尾空格）为 1，否则为 0。",
    )
    paper: ClassVar[str] = ""
    kind: Literal["exact_match"] = "exact_match"

    def build(self, text: TextForm) -> Reward:
        def plain(sentence: str) -> str:
            return sentence.strip().lower() if text.lowercase else sentence.strip()

        def score(translations: Sequence[str], references: Sequence[str]) -> list[float]:
            return [
                float(plain(own) == plain(other))
                for own, other in zip(translations, references, strict=True)
            ]

        return score
