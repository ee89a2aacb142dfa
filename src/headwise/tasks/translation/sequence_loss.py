"""The loss of a translator that learns from its own samples and their rewards.

    1. draw      the greedy output and n samples of each source, with caches and without dropout,
                 on a GPU by recorded steps (models/training_stepper.py)
    2. reward    compare their text with that of the reference
    3. score     the distinct samples through the training forward: log-probabilities with gradient
    4. loss      minimum risk or REINFORCE (training/sequence/risk.py), summed over the sentences

The encoder runs once for a source, with the batch's packed rows, and the decoder once for each of
its distinct samples. The reported loss is minus the reward, summed over sentences and divided by
target tokens as every loss is; the gradient of REINFORCE is that of the expected reward.

Samples are drawn with or without replacement; without, each counts by its importance
(training/sequence/distinct.py).

With annealing (MIXER) the beginning of each reference is given to its samples and learned by
cross-entropy; they write the rest. Validations compute the likelihood, so that they can be compared
with those before.

Random numbers come from torch's generator, which the training loop seeds by (seed, step, batch), as
those of dropout do. Dropout of the recipe acts on step 3 alone.

Tested against: enumeration of all translations of a tiny model; samples one by one; training.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headwise.data.packing import PackedBatch
from headwise.decoding.rules.length_limit import limit_for
from headwise.decoding.search.distinct_samples import draw_distinct_samples
from headwise.decoding.search.samples import draw_samples
from headwise.evaluation.rewards.declaration import Reward, TextForm
from headwise.models.encoder_decoder import EncoderDecoder
from headwise.models.training_stepper import TrainingStepper
from headwise.models.translation_model import TranslationModel
from headwise.models.unpacking import unpack_sentences
from headwise.tasks.translation.length_limits import within_positions
from headwise.tasks.translation.objective import TranslationLoss
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.rewarded_samples import RewardedSamples, reward_samples
from headwise.tasks.translation.sample_scores import RowScores, score_rows
from headwise.tasks.translation.sampled_rows import SampledRows, read_pairs
from headwise.tasks.translation.token_pair import TokenPair
from headwise.text.tokenizer import EOS, PAD
from headwise.text.tokenizer_pair import TokenizerPair
from headwise.training.losses import LossSums
from headwise.training.sequence.choices import (
    MinimumRiskObjective,
    ReinforceObjective,
    SequenceObjective,
)
from headwise.training.sequence.distinct import above_the_weighted
from headwise.training.sequence.risk import above_the_others, expected_risk

MEASURES = ("reward", "reward_of_greedy", "entropy", "distinct_samples")


@dataclass(frozen=True)
class SequenceLoss:
    """A model and an objective with samples."""

    module: TranslationModel
    recipe: TranslationRecipe
    tokenizers: TokenizerPair
    chunk_size: int | None = None
    """Tokens whose logits are made at a time; None: as many as suit the device."""

    @property
    def measures(self) -> tuple[str, ...]:
        """Mean reward of the samples, reward of the greedy output, entropy in nats per token
        (minus the mean log-probability of the drawn tokens), distinct samples of a sentence."""
        return MEASURES

    @property
    def objective(self) -> SequenceObjective:
        return cast("SequenceObjective", self.recipe.training.objective)

    @cached_property
    def reward(self) -> Reward:
        data, evaluation = self.recipe.data, self.recipe.evaluation
        form = TextForm(data.target, evaluation.pretokenized, evaluation.lowercase)
        return self.objective.reward.build(form)

    @cached_property
    def stepper(self) -> TrainingStepper:
        """Kept from update to update: on a GPU it has recorded steps."""
        return TrainingStepper(self.module)

    @cached_property
    def likelihood(self) -> TranslationLoss:
        return TranslationLoss(self.module, self.objective.label_smoothing, self.chunk_size)

    def loss(self, batch: PackedBatch) -> LossSums:
        if not self.module.training:
            return self.likelihood.loss(batch)
        pairs = read_pairs(batch)
        given = [self.num_given(pair) for pair in pairs]
        samples = self.draw(pairs, given)
        sums = self.sum_likelihood(batch)
        loss = self.sum_samples(batch, pairs, samples, given)
        return sums._replace(loss=sums.loss + loss, measured=measure(samples, given, loss))

    def num_given(self, pair: TokenPair) -> int:
        """How many tokens of the reference the samples begin with."""
        annealing = getattr(self.objective, "annealing", None)
        if annealing is None:
            return 0
        free = annealing.num_free(self.module.training_step.count)
        return max(0, len(pair.target) + 1 - free)

    @torch.no_grad()
    def draw(self, pairs: Sequence[TokenPair], given: Sequence[int]) -> list[RewardedSamples]:
        """Samples with their rewards; the module stays in training mode."""
        sampling = self.objective.samples
        longest = within_positions(self.recipe.decoding, self.recipe.model).max_length
        draw = draw_samples if sampling.replacement else draw_distinct_samples
        with self.stepper.at_present() as stepper:
            drawn = draw(
                stepper,
                [pair.source for pair in pairs],
                count=sampling.count,
                temperature=sampling.temperature,
                seed=int(torch.randint(2**62, ())),
                limits=[
                    max(limit_for(longest, len(pair.source)), number + 2)
                    for pair, number in zip(pairs, given, strict=True)
                ],
                prefixes=[pair.target[:number] for pair, number in zip(pairs, given, strict=True)],
            )
        references = [(*pair.target, EOS) for pair in pairs]
        return reward_samples(self.reward, self.tokenizers, pairs, drawn, references)

    def sum_likelihood(self, batch: PackedBatch) -> LossSums:
        """The cross-entropy as far as it is part of the loss; the likelihood is always reported."""
        weight = self.objective.likelihood_weight
        if weight:
            sums = self.likelihood.loss(batch)
            loss = weight * sums.loss
        else:
            with torch.no_grad():
                sums = self.likelihood.loss(batch)
            torch.clear_autocast_cache()
            loss = torch.zeros_like(sums.loss)
        if getattr(self.objective, "annealing", None) is not None:
            loss = loss + self.likelihood.loss(self.given_part(batch)).loss
        return sums.with_loss(loss)

    def given_part(self, batch: PackedBatch) -> PackedBatch:
        """The batch with nothing to predict but the tokens that the samples are given."""
        annealing = cast("ReinforceObjective", self.objective).annealing
        assert annealing is not None
        targets = unpack_sentences(batch.target_segment, batch.target_position)
        real = batch.target_segment > 0
        number = torch.where(real, targets.cell // targets.width, 0)
        free = annealing.num_free(self.module.training_step.count)
        is_given = real & (batch.target_position < targets.length[number] - free)
        return replace(batch, target_output=torch.where(is_given, batch.target_output, PAD))

    def sum_samples(
        self,
        batch: PackedBatch,
        pairs: Sequence[TokenPair],
        samples: Sequence[RewardedSamples],
        given: Sequence[int],
    ) -> Float[Tensor, ""]:
        """The loss of the samples, summed over sentences; its value is minus their reward."""
        objective = self.objective
        distinct = [list(one.counts) for one in samples]
        if isinstance(objective, MinimumRiskObjective) and objective.add_reference:
            ends = [(*pair.target, EOS) for pair in pairs]
            distinct = [list(dict.fromkeys([*a, b])) for a, b in zip(distinct, ends, strict=True)]
        rows = SampledRows.of(distinct, given, batch.source.device)
        reward = rows.tokens.new_tensor(
            [one.rewards[key] for one, keys in zip(samples, distinct, strict=True) for key in keys],
            dtype=torch.float32,
        )
        scores = list(score_rows(self.module, batch, rows, chunk_size=self.chunk_size))
        if isinstance(objective, MinimumRiskObjective):
            return self.risk(scores, rows, reward, num_pairs=len(pairs))
        share = rows.tokens.new_tensor(
            [one.weight(key) for one, keys in zip(samples, distinct, strict=True) for key in keys],
            dtype=torch.float32,
        )
        surrogate = self.reinforce(scores, rows, reward, share, samples)
        return surrogate - surrogate.detach() - (share * reward).sum()

    def risk(
        self, scores: Sequence[RowScores], rows: SampledRows, reward: Tensor, *, num_pairs: int
    ) -> Float[Tensor, ""]:
        objective = cast("MinimumRiskObjective", self.objective)
        totals = sum_rows(scores)
        table = rows.table(totals, num_pairs=num_pairs, fill=0)
        rewards = rows.table(reward, num_pairs=num_pairs, fill=0)
        there = rows.table(torch.ones_like(reward), num_pairs=num_pairs, fill=0) > 0
        return expected_risk(table, rewards, there, sharpness=objective.sharpness).sum()

    def reinforce(
        self,
        scores: Sequence[RowScores],
        rows: SampledRows,
        reward: Float[Tensor, " row"],
        share: Float[Tensor, " row"],
        samples: Sequence[RewardedSamples],
    ) -> Float[Tensor, ""]:
        """A number whose gradient is that of minus the expected reward, with that of a linear
        baseline's squared error."""
        objective = cast("ReinforceObjective", self.objective)
        if objective.baseline == "linear":
            return self.reinforce_linear(scores, reward, share)
        advantage = reward
        greedy = reward.new_tensor([one.rewards[one.greedy] for one in samples])
        if objective.baseline == "greedy_output":
            advantage = reward - greedy[rows.pair]
        elif objective.baseline == "other_samples" and not objective.samples.replacement:
            probability = reward.new_tensor(
                [
                    found[key].probability
                    for one in samples
                    if (found := one.importance) is not None
                    for key in one.counts
                ]
            )
            advantage = above_the_weighted(reward, share, probability, rows.pair, control=greedy)
        elif objective.baseline == "other_samples":
            advantage = above_the_others(
                reward,
                share,
                rows.pair,
                num_pairs=len(samples),
                num_samples=objective.samples.count,
            )
        return -(share * advantage * sum_rows(scores)).sum()

    def reinforce_linear(
        self,
        scores: Sequence[RowScores],
        reward: Float[Tensor, " row"],
        share: Float[Tensor, " row"],
    ) -> Float[Tensor, ""]:
        module = cast("EncoderDecoder", self.module)
        assert module.reward_baseline is not None
        total = reward.new_zeros(())
        for group in scores:
            error = reward[group.rows, None] - module.reward_baseline(group.state)
            term = error.square() - error.detach() * group.log_probability
            total = total + (share[group.rows, None] * term * group.is_free).sum()
        return total


def sum_rows(scores: Sequence[RowScores]) -> Float[Tensor, " row"]:
    """The log-probability of the drawn tokens of each row, in the order of the rows."""
    totals = torch.cat([(one.log_probability * one.is_free).sum(1) for one in scores])
    order = torch.cat([one.rows for one in scores])
    return totals[order.argsort()]


def measure(
    samples: Sequence[RewardedSamples], given: Sequence[int], like: Tensor
) -> Float[Tensor, " sum_or_count"]:
    """Sum and count of each of MEASURES."""
    num_pairs, num_samples = len(samples), sum(len(one.drawn) for one in samples)
    both = list(zip(samples, given, strict=True))
    entropy = -sum(_weigh(one, one.log_probabilities[:, number:].sum(1)) for one, number in both)
    num_tokens = sum(
        _weigh(one, [len(sample) - number for sample in one.drawn]) for one, number in both
    )
    sums = (
        (sum(one.mean * len(one.drawn) for one in samples), num_samples),
        (sum(one.rewards[one.greedy] for one in samples), num_pairs),
        (entropy, num_tokens),
        (sum(len(one.counts) for one in samples), num_pairs),
    )
    return like.new_tensor(sums, dtype=torch.float64).flatten()


def _weigh(samples: RewardedSamples, numbers: Sequence[float] | np.ndarray) -> float:
    """The sum of a number of each sample, as often as it counts."""
    if samples.importance is None:
        return float(sum(numbers))
    weights = [samples.weight(one) for one in samples.drawn]
    return float(np.dot(weights, numbers)) * len(weights)
