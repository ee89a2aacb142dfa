"""The rewards that a recipe may name under `training.objective.reward: {kind: …}`.

A new reward is its own file in evaluation/rewards/ and one name in the union here. A reward of
another package is found through the entry points `headwise.rewards` (settings/added_kinds.py).
"""

from typing import Annotated, get_args

from headwise.evaluation.rewards.chrf import CharacterF
from headwise.evaluation.rewards.constant import ConstantReward
from headwise.evaluation.rewards.declaration import RewardKind
from headwise.evaluation.rewards.exact_match import ExactMatch
from headwise.evaluation.rewards.sentence_bleu import SentenceBleu
from headwise.settings.added_kinds import OpenChoice, all_kinds

GROUP = "headwise.rewards"

RewardSettings = Annotated[
    SentenceBleu | CharacterF | ExactMatch | ConstantReward, OpenChoice(GROUP, RewardKind)
]
BUILT_IN: tuple[type[RewardKind], ...] = get_args(get_args(RewardSettings)[0])
DEFAULT_REWARD = SentenceBleu()


def reward_kinds() -> dict[str, type[RewardKind]]:
    """Every reward by its name: the built-in ones, then those of installed packages."""
    return all_kinds(GROUP, RewardKind, BUILT_IN)
