"""The best sequence under a linear-chain CRF (Viterbi), with the probability of each of its tokens.

Each position has k candidate tokens with emissions e_t, each pair of neighbouring positions
transitions s_t. The best score of a sequence that ends in candidate j of position t is

    δ_1(j) = e_1(j)        δ_{t+1}(j) = e_{t+1}(j) + max_i (δ_t(i) + s_t(i, j))

and the maximising i is remembered, so that the best sequence is read from its end. The CRF gives a
probability to sequences, not to tokens; by the chain rule that of a sequence is a product

    p(y_{t+1} | y_1 … y_t) = exp(s_t(y_t, y_{t+1}) + e_{t+1}(y_{t+1}) + β_{t+1}(y_{t+1}) - β_t(y_t))

where β_t(i) is the logarithm of the sum over all that may follow candidate i (the backward
recursion; for the first token β_0 = log Z). These are the log-probabilities a hypothesis reports.

Viterbi 1967; Lafferty et al. 2001; Sun et al. 2019 (64 candidates of a parallel decoder).
Tested against: enumeration of all sequences; the probabilities sum to one over the first token, and
their product over a path is exp(score - log Z) with the log Z of `training/parallel/crf.py`.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.text.tokenizer import PAD


@dataclass(frozen=True)
class BestPath:
    """The best sequence of each pair; after its end tokens are padding and numbers 0."""

    tokens: Int[Tensor, "pair position"]
    score: Float[Tensor, " pair"]
    """Of the whole sequence: emissions and transitions."""
    token_scores: Float[Tensor, "pair position"]
    """What each token adds: its emission and the transition to it. Their sum is `score`."""
    token_log_probabilities: Float[Tensor, "pair position"]
    """log p(y_t | y_<t) among the candidates; their sum is `score` - log Z."""


def find_best_path(
    emissions: Float[Tensor, "pair position candidate"],
    transitions: Float[Tensor, "pair position-1 candidate candidate"],
    *,
    candidates: Int[Tensor, "pair position candidate"],
    lengths: Int[Tensor, " pair"],
) -> BestPath:
    """The sequence of candidates with the highest score."""
    emissions, transitions = (
        x.to(torch.promote_types(x.dtype, torch.float32)) for x in (emissions, transitions)
    )
    score, path = _viterbi(emissions, transitions, lengths)
    inside = torch.arange(path.shape[1], device=path.device) < lengths[:, None]
    chosen, following = _add_transitions(emissions, transitions, path)
    rest = _sum_of_rest(emissions, transitions, lengths)
    total = (emissions[:, 0] + rest[:, 0]).logsumexp(-1, keepdim=True)
    rest_of_path = rest.gather(2, path[..., None])[..., 0]
    before = torch.cat([total, rest_of_path[:, :-1]], dim=1)
    return BestPath(
        tokens=candidates.gather(2, path[..., None])[..., 0].masked_fill(~inside, PAD),
        score=score.masked_fill(lengths < 1, 0),
        token_scores=(chosen + following).masked_fill(~inside, 0),
        token_log_probabilities=(chosen + following + rest_of_path - before).masked_fill(
            ~inside, 0
        ),
    )


def follow_path(
    emissions: Float[Tensor, "pair position candidate"],
    transitions: Float[Tensor, "pair position-1 candidate candidate"],
    *,
    path: Int[Tensor, "pair position"],
    lengths: Int[Tensor, " pair"],
) -> Float[Tensor, "pair position candidate"]:
    """log p(candidate | the candidates of `path` before it), at every position of a path."""
    rest = _sum_of_rest(emissions, transitions, lengths)
    index = path[:, :-1, None, None].expand(-1, -1, 1, transitions.shape[-1])
    before = torch.zeros_like(emissions)
    before[:, 1:] = transitions.gather(2, index)[:, :, 0]
    return (before + emissions + rest).log_softmax(-1)


def _viterbi(emissions: Tensor, transitions: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """The score of the best path and its candidate at each position.

    After the end of a target the scores stay and each candidate points to itself, so that all paths
    are read from the last position.
    """
    num_pairs, width, num_candidates = emissions.shape
    itself = torch.arange(num_candidates, device=emissions.device).expand(num_pairs, -1)
    current, pointers = emissions[:, 0], []
    for position in range(1, width):
        best, origin = (current[:, :, None] + transitions[:, position - 1]).max(1)
        goes_on = (position < lengths)[:, None]
        current = torch.where(goes_on, best + emissions[:, position], current)
        pointers.append(torch.where(goes_on, origin, itself))
    score, last = current.max(1)
    path = [last]
    for pointer in reversed(pointers):
        path.append(pointer.gather(1, path[-1][:, None])[:, 0])
    return score, torch.stack(path[::-1], dim=1)


def _add_transitions(emissions: Tensor, transitions: Tensor, path: Tensor) -> tuple[Tensor, Tensor]:
    """The emission at each position of a path, and the transition to it (0 for the first)."""
    chosen = emissions.gather(2, path[..., None])[..., 0]
    both = path[:, :-1] * emissions.shape[2] + path[:, 1:]
    step = transitions.flatten(2).gather(2, both[..., None])[..., 0]
    return chosen, torch.cat([torch.zeros_like(chosen[:, :1]), step], dim=1)


def _sum_of_rest(emissions: Tensor, transitions: Tensor, lengths: Tensor) -> Tensor:
    """β: the logarithm of the sum over all continuations of each candidate."""
    scores = torch.zeros_like(emissions)
    for position in range(emissions.shape[1] - 2, -1, -1):
        ahead = (emissions[:, position + 1] + scores[:, position + 1])[:, None]
        ahead = (transitions[:, position] + ahead).logsumexp(2)
        scores[:, position] = torch.where((position + 1 < lengths)[:, None], ahead, 0)
    return scores
