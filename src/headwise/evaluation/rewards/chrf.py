"""Computes chrF of single sentences by sacreBLEU: an F-score of n-grams of characters.

It needs no words and no smoothing, so it also compares text without spaces and long words of which
only the ending is wrong. The reward is between 0 and 1.

Popović 2015. Tested against sacreBLEU's `sentence_chrf`.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from headwise.evaluation.rewards.declaration import Reward, RewardKind, TextForm
from headwise.settings.kind import Words


class CharacterF(RewardKind):
    """chrF of a sentence."""

    title: ClassVar[Words] = ("chrF", "chrF")
    summary: ClassVar[Words] = (
        "F-score of the n-grams of characters, up to order 6.",
        "字符 n 元组（一至六元）的 F 值。",
    )
    paper: ClassVar[str] = "Popović 2015, chrF: character n-gram F-score"
    kind: Literal["chrf"] = "chrf"

    def build(self, text: TextForm) -> Reward:
        from headwise.evaluation.translation import build_metrics

        metric = build_metrics(text.language, lowercase=text.lowercase)["chrf"]

        def score(translations: Sequence[str], references: Sequence[str]) -> list[float]:
            return [
                metric.sentence_score(own, [other]).score / 100
                for own, other in zip(translations, references, strict=True)
            ]

        return score
