"""The objectives that learn from samples of whole translations and their rewards, as a recipe names
them under `training.objective`.

    minimum_risk   the expected reward over a few samples, renormalised among them
    reinforce      the expected reward over all translations, estimated from samples

The baseline of `reinforce` is a word: with `greedy_output` it is self-critical training. With
`annealing` it is MIXER: the beginning of each target is learned by cross-entropy, the rest by its
reward.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from headwise.evaluation.rewards.choices import DEFAULT_REWARD, RewardSettings
from headwise.settings import Settings

Fraction = Annotated[float, Field(ge=0, lt=1)]
Baseline = Literal["greedy_output", "other_samples", "linear", "none"]


class SampleSettings(Settings):
    """Which translations are drawn from the model at each update."""

    count: Annotated[int, Field(ge=1, le=256)] = 8
    """Samples of each source sentence."""
    replacement: bool = True
    """Whether the same one may come several times (it is computed once). With false all are
    different, and `reinforce` weights them by how probable it was that they are among the samples
    (Kool et al. 2019)."""
    temperature: Annotated[float, Field(ge=0.05, le=10)] = 1.0
    """Below 1 probable translations are drawn still more often. The gradient of `reinforce` is that
    of the expected reward only at 1."""


class SequenceObjective(Settings):
    """What these objectives have in common."""

    shows_target: ClassVar[bool] = False
    samples_targets: ClassVar[bool] = True
    reward: RewardSettings = DEFAULT_REWARD
    """What a translation is worth."""
    samples: SampleSettings = SampleSettings()
    likelihood_weight: Annotated[float, Field(ge=0, le=100)] = 0.0
    """The cross-entropy of the reference is added, times this."""
    label_smoothing: Fraction = 0.1
    """Share of the probability spread evenly over the vocabulary, in that cross-entropy."""


class MinimumRiskObjective(SequenceObjective):
    """Minimum risk training (Shen et al. 2016): the expected reward over a few translations, whose
    probabilities are sharpened and renormalised among them.
    """

    kind: Literal["minimum_risk"] = "minimum_risk"
    sharpness: Annotated[float, Field(gt=0, le=10)] = 0.005
    """The exponent of the probabilities (α of the paper): small values make all samples nearly
    equal, at 1 the most probable one counts alone."""
    add_reference: bool = False
    """Whether the reference is one of the translations, beside the samples."""


class AnnealingSettings(Settings):
    """How the part of a target that is learned by its reward grows (MIXER, Ranzato et al. 2016)."""

    tokens: Annotated[int, Field(ge=1, le=10_000)] = 3
    """Tokens at the end of each target that are learned by the reward at first, and by how many
    more each time; those before are given, and learned by cross-entropy."""
    every: Annotated[int, Field(ge=1, le=1_000_000_000)] = 500
    """Updates after which that part grows."""

    def num_free(self, step: int) -> int:
        """Tokens at the end that are learned by the reward at update number `step` (from 1)."""
        return self.tokens * -(-max(step, 1) // self.every)


class ReinforceObjective(SequenceObjective):
    """REINFORCE (Williams 1992): the log-probability of each sample, times how much better than a
    baseline it is.
    """

    kind: Literal["reinforce"] = "reinforce"
    baseline: Baseline = "other_samples"
    """What a reward is compared with: that of the `greedy_output` (self-critical training, Rennie
    et al. 2017), the mean of the `other_samples`, or a `linear` function of the decoder's state
    that is learned beside (needs `model.reward_baseline`); `none`: 0."""
    annealing: AnnealingSettings | None = None
    """MIXER; null: all tokens of a sample are learned by its reward."""
