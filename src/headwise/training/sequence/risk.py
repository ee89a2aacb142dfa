"""Computes the losses of samples: minimum risk, and the weights of REINFORCE.

With samples y_1 … y_n of one source, their log-probabilities ℓ_i and rewards r_i, minimum risk is

    Q_i  = exp(α ℓ_i) / Σ_j exp(α ℓ_j)           over distinct samples
    risk = -Σ_i Q_i r_i

and REINFORCE is the loss whose gradient is that of -E[r], estimated without bias:

    loss = -1/n Σ_i (r_i - b_i) ℓ_i              b_i must not depend on y_i
    b_i  = the mean of r_j, j ≠ i                baseline other_samples
           the reward of the greedy output       baseline greedy_output

Both subtract the highest reward of the sentence first. That changes no gradient, and with a
constant reward every term is exactly zero.

Shen et al. 2016, *Minimum Risk Training*; Williams 1992; Rennie et al. 2017, *Self-Critical
Sequence Training*; Kool et al. 2019, *Buy 4 REINFORCE Samples, Get a Baseline for Free!*. Tested
against enumeration of all translations of a small model, risk and gradient.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def expected_risk(
    log_probability: Float[Tensor, "pair candidate"],
    reward: Float[Tensor, "pair candidate"],
    is_candidate: Bool[Tensor, "pair candidate"],
    *,
    sharpness: float,
) -> Float[Tensor, " pair"]:
    """The risk of each sentence over its candidates; at least one must be there."""
    scores = (sharpness * log_probability).masked_fill(~is_candidate, -torch.inf)
    best = reward.masked_fill(~is_candidate, -torch.inf).amax(1, keepdim=True)
    regret = torch.where(is_candidate, best - reward, 0)
    return (scores.softmax(1) * regret).sum(1) - best[:, 0]


def above_the_others(
    reward: Float[Tensor, " row"],
    share: Float[Tensor, " row"],
    pair: Int[Tensor, " row"],
    *,
    num_pairs: int,
    num_samples: int,
) -> Float[Tensor, " row"]:
    """r_i - b_i with the mean of the other samples; `share` of its sentence's samples are row i.

    Since b_i = (n m - r_i) / (n - 1) with the mean m of all n samples, this is
    (r_i - m) n / (n - 1).
    """
    best = reward.new_full((num_pairs,), -torch.inf).scatter_reduce(0, pair, reward, "amax")
    regret = reward - best[pair]
    mean = reward.new_zeros(num_pairs).index_add(0, pair, share * regret)
    return (regret - mean[pair]) * (num_samples / (num_samples - 1))
