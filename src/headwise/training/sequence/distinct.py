"""REINFORCE from samples that were drawn without replacement.

Samples y_1 … y_k are all different, so their mean is no estimate: probable translations come once
where they would have come often. Each counts by its importance instead. With p_i the probability of
y_i and q_i the probability that it is among the samples (decoding/search/distinct_samples.py),

    E[f] ≈ Σ_i w_i f_i                           w_i = p_i / q_i
    loss = -Σ_i w_i (a_i) ℓ_i                    ℓ_i = log p_i, the only number with a gradient
    a_i  = r_i (1 - p_i + w_i) - Σ_j w_j r_j     baseline other_samples
           r_i - b                               any other baseline

Both have the gradient of -E[r] as their expectation. In the first, w_i r_i of the sample itself is
taken out of the baseline and p_i r_i put there, which is what makes it unbiased. Rewards are those
above the reward of the greedy output, which does not depend on the samples; a constant reward then
gives exactly zero.

Where all translations are improbable, w_i is near exp(κ) with 1 / exp(κ) ~ Gamma(k + 1), so that
its m-th moment is finite for m ≤ k: the variance of products of two weights, and with it that of
the baseline other_samples, is finite from four samples on.

Kool et al. 2019, *Buy 4 REINFORCE Samples, Get a Baseline for Free!*; Kool et al. 2020, *Estimating
Gradients for Discrete Random Variables by Sampling without Replacement*. Tested against the
enumerated gradient of a small model.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def above_the_weighted(
    reward: Float[Tensor, " row"],
    weight: Float[Tensor, " row"],
    probability: Float[Tensor, " row"],
    pair: Int[Tensor, " row"],
    *,
    control: Float[Tensor, " pair"],
) -> Float[Tensor, " row"]:
    """a_i of each row for the baseline of the other samples; `control` is a reward of each sentence
    that does not depend on its samples."""
    above = reward - control[pair]
    total = torch.zeros_like(control).index_add(0, pair, weight * above)
    return above * (1 - probability + weight) - total[pair]
