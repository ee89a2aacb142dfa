"""Computes log-probabilities of a few chosen tokens at each position, without a table of all words.

A loss over alignments (CTC, a graph) compares every position with every token of its sentence: with
50 tokens it needs 50 numbers of a softmax over 32,000 words. With a hidden state h_i, the output
layer W, b and the chosen tokens c_i1 … c_iK of position i,

    z_i              = W h_i + b
    score_ik         = z_i[c_ik] - log Σ_w exp z_iw
    d loss / d z_iw  = Σ_{k: c_ik = w} g_ik - softmax(z_i)_w Σ_k g_ik      g = d loss / d score

Positions are processed in chunks, as in `training/losses.py`: the logits of a chunk, their
normalizer and the chosen values; then the logits are discarded. The gradients g are known only
after the loss has looked at all positions, so the backward pass computes the logits again: one
product more, in exchange for a table of positions × words that is never stored. A token may be
chosen more than once at a position; its gradients add up.

`best_tokens` goes through the same chunks and keeps the most probable token of each position, which
is all that a greedy parallel decoder needs; `likely_tokens` keeps several, and `drawn_tokens` one
that is drawn. `repeats` compares neighbouring positions over all words, which n-grams under CTC
need (ctc_ngrams.py). On a GPU the softmax over a row and its gradient are kernels
(gpu/softmax_rows.py).

Paper: Hsu et al. 2024, "Liger Kernel" (an output layer in chunks). Tested against log_softmax and
gather in float64, by gradcheck, and by recording the size of every tensor that is created.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from headwise.gpu import runs_kernels
from headwise.text.tokenizer import PAD
from headwise.training.losses import choose_chunk_size

FIXED_POINT = 1 << 40
"""What a probability of 1 becomes where probabilities are added up as integers."""


class LikelyTokens(NamedTuple):
    """The most probable tokens of each position, the best first."""

    token: Int[Tensor, "position rank"]
    log_probability: Float[Tensor, "position rank"]


class BestTokens(NamedTuple):
    """The most probable token of each position."""

    token: Int[Tensor, " position"]
    log_probability: Float[Tensor, " position"]


def score_tokens(
    hidden: Float[Tensor, "position dim"],
    weight: Float[Tensor, "vocab dim"],
    *,
    candidates: Int[Tensor, "position candidate"],
    bias: Float[Tensor, " vocab"] | None = None,
    chunk_size: int | None = None,
) -> Float[Tensor, "position candidate"]:
    """log p(candidate | position) under the softmax over the whole vocabulary, at least fp32.

    Under autocast the products run in its dtype and the sums of each chunk in fp32. The gradient is
    for `hidden`, `weight` and `bias`.
    """
    chunks = _choose_chunks(hidden, weight, chunk_size)
    scores: Tensor = _TokenScores.apply(hidden, weight, bias, candidates, chunks)
    return scores


@torch.no_grad()
def best_tokens(
    hidden: Float[Tensor, "position dim"],
    weight: Float[Tensor, "vocab dim"],
    *,
    bias: Float[Tensor, " vocab"] | None = None,
    excluded: Sequence[int] = (),
    chunk_size: int | None = None,
) -> BestTokens:
    """The most probable token of each position that is not `excluded`, without a gradient.

    Its probability is that of the whole vocabulary, the excluded tokens included.
    """
    chunks = _choose_chunks(hidden, weight, chunk_size)
    tokens = hidden.new_empty(len(hidden), dtype=torch.long)
    values = hidden.new_empty(len(hidden), dtype=chunks.sum_dtype)
    for part, _, logits in _each_chunk(hidden, weight, bias, chunks):
        normalizer, best = _normalize(logits, chunks)
        if excluded:
            best = _without(logits, excluded).argmax(dim=-1)
        tokens[part] = best
        values[part] = (logits.gather(1, best[:, None]) - normalizer)[:, 0]
    return BestTokens(tokens, values)


@torch.no_grad()
def likely_tokens(
    hidden: Float[Tensor, "position dim"],
    weight: Float[Tensor, "vocab dim"],
    *,
    count: int,
    bias: Float[Tensor, " vocab"] | None = None,
    excluded: Sequence[int] = (),
    chunk_size: int | None = None,
) -> LikelyTokens:
    """The `count` most probable tokens of each position that are not `excluded`, or as many as
    there are; probabilities are those of the whole vocabulary.
    """
    chunks = _choose_chunks(hidden, weight, chunk_size)
    count = min(count, len(weight) - len(excluded))
    tokens = hidden.new_empty(len(hidden), count, dtype=torch.long)
    values = hidden.new_empty(len(hidden), count, dtype=chunks.sum_dtype)
    for part, _, logits in _each_chunk(hidden, weight, bias, chunks):
        logits = logits.to(chunks.sum_dtype)
        normalizer = logits.logsumexp(dim=-1, keepdim=True)
        value, tokens[part] = _without(logits, excluded).topk(count, dim=-1)
        values[part] = value - normalizer
    return LikelyTokens(tokens, values)


@torch.no_grad()
def drawn_tokens(
    hidden: Float[Tensor, "position dim"],
    weight: Float[Tensor, "vocab dim"],
    *,
    place: Float[Tensor, " position"],
    bias: Float[Tensor, " vocab"] | None = None,
    excluded: Sequence[int] = (),
    chunk_size: int | None = None,
) -> Int[Tensor, " position"]:
    """A token of each position, drawn from its distribution without the `excluded` tokens: the one
    in which the cumulative probability passes `place`, a number in [0, 1).
    """
    chunks = _choose_chunks(hidden, weight, chunk_size)
    tokens = hidden.new_empty(len(hidden), dtype=torch.long)
    for part, _, logits in _each_chunk(hidden, weight, bias, chunks):
        probability = _without(logits.to(chunks.sum_dtype), excluded).softmax(dim=-1)
        # Integers, because a GPU may add up numbers with a point in any order.
        total = (probability * FIXED_POINT).long().cumsum(dim=-1)
        wanted = (place[part, None].double() * total[:, -1:]).long()
        tokens[part] = torch.searchsorted(total, wanted, right=True)[:, 0]
    return tokens


def repeats(
    hidden: Float[Tensor, "pair position dim"],
    weight: Float[Tensor, "vocab dim"],
    *,
    bias: Float[Tensor, " vocab"] | None = None,
    chunk_size: int | None = None,
) -> Float[Tensor, "pair position-1"]:
    """The probability that two neighbouring positions write the same token, padding excluded.

    Some pairs at a time; their logits are computed again for the gradient.
    """
    num_pairs, num_positions, _ = hidden.shape
    if chunk_size is None:
        chunk_size = choose_chunk_size(
            num_pairs * num_positions, len(weight), device=hidden.device.type
        )
    size = max(1, chunk_size // num_positions)

    def part(states: Tensor) -> Tensor:
        probability = F.linear(states, weight, bias).float().softmax(-1)
        product = probability[:, 1:] * probability[:, :-1]
        return product.sum(-1) - product[..., PAD]

    found = [
        checkpoint(part, hidden[start : start + size], use_reentrant=False)
        for start in range(0, num_pairs, size)
    ]
    return torch.cat(found)


def _without(logits: Tensor, excluded: Sequence[int]) -> Tensor:
    """The logits with those of some tokens overwritten; no index is copied to the device, which a
    recorded update could not do."""
    for token in excluded:
        logits[:, token] = -torch.inf
    return logits


class _Division(NamedTuple):
    """How one call is divided, and in which precision its products are computed."""

    size: int
    dtype: torch.dtype

    @property
    def sum_dtype(self) -> torch.dtype:
        """Sums over words and over positions are at least fp32."""
        return torch.promote_types(self.dtype, torch.float32)


def _choose_chunks(hidden: Tensor, weight: Tensor, chunk_size: int | None) -> _Division:
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
    if chunk_size is None:
        chunk_size = choose_chunk_size(len(hidden), len(weight), device=device)
    return _Division(chunk_size, dtype)


def _each_chunk(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, chunks: _Division
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """The positions of each chunk, their hidden states, and their logits."""
    weight, bias = weight.to(chunks.dtype), None if bias is None else bias.to(chunks.dtype)
    for start in range(0, len(hidden), chunks.size):
        part = slice(start, start + chunks.size)
        states = hidden[part].to(chunks.dtype)
        yield part, states, F.linear(states, weight, bias)


def _normalize(logits: Tensor, chunks: _Division) -> tuple[Tensor, Tensor]:
    """log Σ exp of each row, in the dtype of sums, and the word with the greatest logit."""
    if runs_kernels(logits):
        from headwise.gpu import softmax_rows

        return softmax_rows.normalize(logits)
    exact = logits.to(chunks.sum_dtype)
    return exact.logsumexp(dim=-1, keepdim=True), exact.argmax(dim=-1)


def _put_slopes(
    logits: Tensor, normalizers: Tensor, candidates: Tensor, grads: Tensor, chunks: _Division
) -> Tensor:
    """d loss / d z, computed in place of the logits where that is possible."""
    if runs_kernels(logits):
        from headwise.gpu import softmax_rows

        if candidates.shape[1] <= softmax_rows.MAX_CANDIDATES:
            softmax_rows.put_slopes(logits, normalizers, candidates, grads)
            return logits
    exact = logits.to(chunks.sum_dtype)
    slopes = exact.sub_(normalizers).exp_().mul_(-grads.sum(dim=-1, keepdim=True))
    return slopes.scatter_add_(1, candidates, grads)


class _TokenScores(torch.autograd.Function):
    """Keeps the normalizer of each position for the backward pass, and computes the logits again.

    Under gradients of zero (padding) a position gets a gradient of exactly zero.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        candidates: Tensor,
        chunks: _Division,
    ) -> Tensor:
        scores = hidden.new_empty(candidates.shape, dtype=chunks.sum_dtype)
        normalizers = hidden.new_empty(len(hidden), 1, dtype=chunks.sum_dtype)
        for part, _, logits in _each_chunk(hidden, weight, bias, chunks):
            normalizers[part], _ = _normalize(logits, chunks)
            scores[part] = logits.gather(1, candidates[part]) - normalizers[part]
        ctx.chunks = chunks
        ctx.save_for_backward(hidden, weight, bias, candidates, normalizers)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_scores: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, candidates, normalizers = ctx.saved_tensors
        chunks: _Division = ctx.chunks
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros_like(weight, dtype=chunks.sum_dtype)
        grad_bias = torch.zeros(len(weight), dtype=chunks.sum_dtype, device=weight.device)
        product_weight = weight.to(chunks.dtype)
        for part, states, logits in _each_chunk(hidden, weight, bias, chunks):
            grads = grad_scores[part]
            slope = _put_slopes(logits, normalizers[part], candidates[part], grads, chunks)
            grad_bias += slope.sum(dim=0, dtype=chunks.sum_dtype)
            slope = slope.to(chunks.dtype)
            grad_hidden[part] = torch.mm(slope, product_weight)
            grad_weight.add_(torch.mm(slope.t(), states))
        return (
            grad_hidden,
            grad_weight.to(weight.dtype),
            None if bias is None else grad_bias.to(bias.dtype),
            None,
            None,
        )
