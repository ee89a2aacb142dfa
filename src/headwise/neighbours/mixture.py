"""Mixes the probabilities of a model with those of its nearest stored neighbours.

    p_kNN(w) ∝ Σ exp(-dᵢ / T)     over the neighbours i whose token is w; dᵢ squared distances
    p(w)     = λ p_kNN(w) + (1 - λ) p_model(w)

λ is a number, or λ = most · exp(-d₁ / distance) with the distance d₁ of the nearest neighbour, so
that a memory which knows nothing similar stays silent. With λ = 0 the model's numbers are returned
as they are.

Khandelwal et al. 2020 (equations 2 and 3) and 2021.
Tested against: a mixture computed in numpy over all entries; sums to one; λ = 0 changes no bit.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.neighbours.search import FoundNeighbours
from headwise.neighbours.settings import Mixing, NearnessWeight


def vote(found: FoundNeighbours, temperature: float) -> Float[Tensor, "query neighbour"]:
    """The share of each neighbour in p_kNN."""
    return (-found.distances / temperature).softmax(-1)


def weigh(found: FoundNeighbours, mixing: Mixing) -> Float[Tensor, "query"]:
    """λ of each query."""
    match mixing.weight:
        case NearnessWeight(most=most, distance=distance):
            return most * (-found.distances[:, 0] / distance).exp()
        case number:
            return found.distances.new_full((len(found.distances),), number)


def mix(
    scores: Float[Tensor, "query vocab"], found: FoundNeighbours, mixing: Mixing
) -> Float[Tensor, "query vocab"]:
    """Log-probabilities of all tokens, given those of the model."""
    weight = weigh(found, mixing)
    shares = torch.zeros(scores.shape, dtype=torch.float64, device=found.distances.device)
    shares.scatter_add_(1, found.tokens, vote(found, mixing.temperature))
    remembered = (shares.log() + weight.log()[:, None]).to(scores.device, scores.dtype)
    own = scores + torch.log1p(-weight)[:, None].to(scores.device, scores.dtype)
    return torch.logaddexp(own, remembered)


def mix_chosen(
    scores: Float[Tensor, "query"],
    tokens: Int[Tensor, "query"],
    found: FoundNeighbours,
    mixing: Mixing,
) -> Float[Tensor, "query"]:
    """The log-probability of one token for each query, given that of the model."""
    weight = weigh(found, mixing)
    same = found.tokens == tokens.to(found.tokens.device)[:, None]
    share = (vote(found, mixing.temperature) * same).sum(1)
    remembered = (share.log() + weight.log()).to(scores.device, scores.dtype)
    own = scores + torch.log1p(-weight).to(scores.device, scores.dtype)
    return torch.logaddexp(own, remembered)
