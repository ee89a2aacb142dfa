"""Finds the position at which a parallel decoder with more positions than tokens wrote each token
of a target.

    maximise Σ_j log p(y_j at position c_j)    over c_1 < c_2 < …

A decoder with more positions than tokens says nowhere which of them wrote a token. For pictures and
alignments the positions are taken, in order, at which the tokens are most probable together: a
recursion over the tokens (Viterbi), for CTC and graphs alike.

Tested against: enumeration of all increasing positions.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def written_positions(
    scores: Float[Tensor, "position token"],
) -> Int[Tensor, " token"]:
    """Increasing positions; more tokens than positions: the last ones share the last position."""
    num_positions, num_tokens = scores.shape
    if num_tokens > num_positions:
        return torch.arange(num_tokens, device=scores.device).clamp(max=num_positions - 1)
    best = scores.new_full((num_tokens, num_positions), -torch.inf)
    origin = torch.zeros(num_tokens, num_positions, dtype=torch.int64, device=scores.device)
    before = scores.new_zeros(num_positions)
    for token in range(num_tokens):
        best[token] = before + scores[:, token]
        reached = best[token].cummax(0)
        origin[token] = reached.indices
        before = torch.cat([reached.values.new_full((1,), -torch.inf), reached.values[:-1]])
    places = [int(best[-1].argmax())] if num_tokens else []
    for token in range(num_tokens - 2, -1, -1):
        places.append(int(origin[token, places[-1] - 1]))
    return torch.tensor(places[::-1], dtype=torch.int64, device=scores.device)
