"""Declares the settings of scheduled sampling (`training.objective.kind: scheduled_sampling`): how
many tokens of the decoder's input stay those of the reference, and what replaces the others.

`scheduled_sampling.py` computes it.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from headwise.settings import Settings
from headwise.training.choices import Fraction, Steps

GoldShare = Annotated[float, Field(ge=0, le=1)]


class LinearGold(Settings):
    """The share of gold tokens falls along a straight line."""

    kind: Literal["linear"] = "linear"
    start: GoldShare = 1.0
    """The share in the first update."""
    end: GoldShare = 0.5
    """The share after `steps` updates, and from then on."""
    steps: Steps | None = None
    """Updates from `start` to `end`; null: training.steps."""


class ExponentialGold(Settings):
    """The share of gold tokens is `base` to the power of the updates made, at least `floor`."""

    kind: Literal["exponential"] = "exponential"
    base: Annotated[float, Field(gt=0, lt=1)] = 0.9999
    """What the share is multiplied by in each update."""
    floor: GoldShare = 0.0
    """The share never falls below it."""


class InverseSigmoidGold(Settings):
    """The share of gold tokens is k / (k + exp(i / k)) after i updates, at least `floor`: it stays
    near 1 at first, is 1/2 after k ln k updates, and falls fastest there.
    """

    kind: Literal["inverse_sigmoid"] = "inverse_sigmoid"
    k: Annotated[float, Field(ge=1, le=1e8)] = 1000.0
    """How slowly the share falls."""
    floor: GoldShare = 0.0
    """The share never falls below it."""


GoldSchedule = Annotated[
    LinearGold | ExponentialGold | InverseSigmoidGold, Field(discriminator="kind")
]


class ArgmaxPrediction(Settings):
    """The most probable token."""

    kind: Literal["argmax"] = "argmax"


class SampledPrediction(Settings):
    """A token drawn from the model's distribution."""

    kind: Literal["sampled"] = "sampled"


class TopKPrediction(Settings):
    """The mean of the embeddings of the `k` most probable tokens, weighted by their
    probabilities.
    """

    kind: Literal["top_k"] = "top_k"
    k: Annotated[int, Field(ge=2, le=100)] = 5
    """Tokens that are mixed."""


Prediction = Annotated[
    ArgmaxPrediction | SampledPrediction | TopKPrediction, Field(discriminator="kind")
]


class MixingInPasses(Settings):
    """The predictions of a whole pass of the decoder replace tokens of the next pass: two passes
    for Transformers (Mihaylova & Martins 2019), or more (Duckworth et al. 2019).
    """

    kind: Literal["passes"] = "passes"
    count: Annotated[int, Field(ge=1, le=64)] = 1
    """Passes without gradient before the pass that learns."""


class MixingInSteps(Settings):
    """Each step of a recurrent decoder reads the prediction of the step before it (Bengio et al.
    2015).
    """

    kind: Literal["sequential"] = "sequential"


Mixing = Annotated[MixingInPasses | MixingInSteps, Field(discriminator="kind")]


class ScheduledSamplingObjective(Settings):
    """Predict the next token after inputs some of which the model predicted itself, as in a search.
    For translators that write from left to right.
    """

    shows_target: ClassVar[bool] = False
    kind: Literal["scheduled_sampling"] = "scheduled_sampling"
    gold: GoldSchedule = LinearGold()
    """The share of the decoder's inputs that stay the tokens of the reference."""
    prediction: Prediction = ArgmaxPrediction()
    """What the decoder reads in place of the other tokens."""
    mixing: Mixing = MixingInPasses()
    """When the predictions are made."""
    label_smoothing: Fraction = 0.1
    """Share of the probability spread evenly over the vocabulary; 0: plain maximum likelihood."""
