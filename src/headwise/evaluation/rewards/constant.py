"""Gives every translation the same reward: a control that tells learning from side effects.

A training on rewards can score better without learning from them: it goes on training, and it can
make the probabilities that are high already still higher (Choshen et al. 2020). With a constant
reward there is nothing to learn. Minimum risk and a baseline that depends on the reward then have a
gradient of exactly zero; what still changes is due to the rest of the recipe.
Tested: these gradients are zero.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

from headwise.evaluation.rewards.declaration import Reward, RewardKind, TextForm
from headwise.settings.kind import Words


class ConstantReward(RewardKind):
    """The same for every translation."""

    title: ClassVar[Words] = ("constant", "常数")
    summary: ClassVar[Words] = (
        "The same for every translation: a control experiment.",
        "每个译文都相同：对照实验。",
    )
    paper: ClassVar[str] = (
        "Choshen et al. 2020, On the Weaknesses of Reinforcement Learning for Neural Machine "
        "Translation"
    )
    kind: Literal["constant"] = "constant"
    value: float = 1.0
    """The reward of every translation."""

    def build(self, text: TextForm) -> Reward:
        def score(translations: Sequence[str], references: Sequence[str]) -> list[float]:
            return [self.value] * len(translations)

        return score
