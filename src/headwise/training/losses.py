"""Computes the loss: cross-entropy with label smoothing, from hidden states without all logits.

With a hidden state h, logits z = W h + b, a target y and a vocabulary of size V, label smoothing ε
puts (1 - ε) of the probability on y and spreads ε evenly, so that the model does not become
overconfident:

    loss         = (1 - ε) (log Σ exp z - z_y) + ε (log Σ exp z - mean z)
    d loss / d z = softmax(z) - (1 - ε) onehot(y) - ε / V

The logits of 25,000 tokens over a vocabulary of 32,000 take 3 GB, although the logits of a token
are used only once. Tokens are therefore processed in chunks: the logits of a chunk, its loss, and
at once the gradients for h, W and b; then the logits are discarded. Nothing is computed twice,
because the backward pass only multiplies by the incoming scalar. Results are *sums* over tokens
that are not padding; the caller divides by the number of tokens of the whole batch.

Papers: Szegedy et al. 2016 (label smoothing); Hsu et al. 2024, "Liger Kernel" (gradients in the
forward pass). Tested against `F.cross_entropy` in float64, by gradcheck, and by recording the size
of every tensor that is created.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from headwise.text.tokenizer import PAD

# Logits in one chunk. On a CPU they should stay in cache (2 M floats = 8 MB); a GPU wants large
# products.
CHUNK_LOGITS_CPU = 1 << 21
CHUNK_LOGITS_CUDA = 1 << 25


class LossSums(NamedTuple):
    """What a batch contributes, as sums, so that batches of different sizes combine correctly."""

    loss: Tensor
    """The smoothed cross-entropy summed over target tokens; it carries the gradient."""
    negative_log_likelihood: Tensor
    """Without smoothing, summed; `exp` of its mean is the perplexity. It has no gradient."""
    num_tokens: Tensor
    """Target tokens that are not padding."""
    num_correct: Tensor | None = None
    """Tokens whose most probable prediction is the target; None unless requested."""
    measured: Tensor | None = None
    """Sum and count of each word that the objective measures (`Measuring` in updates.py)."""

    def with_loss(self, loss: Tensor) -> "LossSums":
        """The same sums with another loss; torch.compile 2.11 fails on `_replace`."""
        return LossSums(loss, *self[1:])


def cross_entropy(
    hidden: Float[Tensor, "token dim"],
    weight: Float[Tensor, "vocab dim"],
    *,
    targets: Int[Tensor, " token"],
    bias: Float[Tensor, " vocab"] | None = None,
    smoothing: float = 0.0,
    count_correct: bool = False,
    chunk_size: int | None = None,
) -> LossSums:
    """Loss sums of a batch of hidden states; tokens whose target is padding do not count.

    Under autocast the products run in its dtype and the softmax of each chunk in fp32.
    """
    device = hidden.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
    if chunk_size is None:
        chunk_size = choose_chunk_size(len(targets), len(weight), device=device)
    form = _LossConstants(smoothing, count_correct, chunk_size, dtype)
    if torch.is_grad_enabled() and (hidden.requires_grad or weight.requires_grad):
        loss, negative_log_likelihood, num_correct = _CrossEntropy.apply(
            hidden, weight, bias, targets, form
        )
    else:
        loss, negative_log_likelihood, num_correct = _run_chunks(
            hidden, weight, bias, targets, form
        )
    return LossSums(
        loss, negative_log_likelihood, targets.ne(PAD).sum(), num_correct if count_correct else None
    )


def choose_chunk_size(num_tokens: int, num_words: int, *, device: str) -> int:
    """As few chunks of equal size as the limit on logits allows, in multiples of 64 tokens."""
    bound = CHUNK_LOGITS_CUDA if device == "cuda" else CHUNK_LOGITS_CPU
    num_chunks = max(1, -(-num_tokens * num_words // bound))
    size = -(-num_tokens // num_chunks)
    return max(64, -(-size // 64) * 64)


class _LossConstants(NamedTuple):
    """The constants of one call."""

    smoothing: float
    count_correct: bool
    chunk_size: int
    dtype: torch.dtype


class _CrossEntropy(torch.autograd.Function):
    """Computes the gradients in the forward pass, chunk by chunk, and keeps them instead of the
    logits.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        form: _LossConstants,
    ) -> tuple[Tensor, Tensor, Tensor]:
        gradients = _Gradients(
            hidden=torch.empty_like(hidden, dtype=form.dtype),
            weight=torch.zeros_like(weight, dtype=_sum_dtype(form.dtype)),
            bias=None if bias is None else torch.zeros_like(bias, dtype=_sum_dtype(form.dtype)),
        )
        sums = _run_chunks(hidden, weight, bias, targets, form, gradients)
        ctx.has_bias = bias is not None
        ctx.save_for_backward(
            gradients.hidden.to(hidden.dtype),
            gradients.weight.to(weight.dtype),
            *([] if gradients.bias is None or bias is None else [gradients.bias.to(bias.dtype)]),
        )
        ctx.mark_non_differentiable(*sums[1:])
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [gradient * grad_loss.to(gradient.dtype) for gradient in ctx.saved_tensors]
        return scaled[0], scaled[1], scaled[2] if ctx.has_bias else None, None, None


class _Gradients(NamedTuple):
    """Filled chunk by chunk; the sums over tokens (weight, bias) are at least fp32."""

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None


def _sum_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _run_chunks(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    form: _LossConstants,
    gradients: _Gradients | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Loss, negative log-likelihood and number correct, summed; `gradients` is filled when
    given.
    """
    loss, negative_log_likelihood = hidden.new_zeros(2, dtype=_sum_dtype(form.dtype)).unbind()
    num_correct = targets.new_zeros(())
    weight, bias = weight.to(form.dtype), None if bias is None else bias.to(form.dtype)
    for start in range(0, len(targets), form.chunk_size):
        chunk = slice(start, start + form.chunk_size)
        states, words = hidden[chunk].to(form.dtype), targets[chunk, None]
        counted = words.ne(PAD)
        scores = F.log_softmax(F.linear(states, weight, bias), dim=-1, dtype=_sum_dtype(form.dtype))
        certain = scores.gather(1, words).masked_fill(~counted, 0).sum()
        even = scores.mean(dim=-1, keepdim=True).masked_fill(~counted, 0).sum()
        loss = loss - (1 - form.smoothing) * certain - form.smoothing * even
        negative_log_likelihood = negative_log_likelihood - certain
        if form.count_correct:
            num_correct = (
                num_correct + (scores.argmax(dim=-1, keepdim=True).eq(words) & counted).sum()
            )
        if gradients is not None:
            slope = _slope(scores, words, form.smoothing).to(form.dtype)
            gradients.hidden[chunk] = torch.mm(slope, weight).mul_(counted)
            gradients.weight.add_(torch.mm(slope.t(), states * counted))
            if gradients.bias is not None:
                gradients.bias.add_(torch.mm(slope.t(), counted.to(slope.dtype))[:, 0])
    return loss, negative_log_likelihood, num_correct


def _slope(scores: Tensor, words: Tensor, smoothing: float) -> Tensor:
    """d loss / d z, computed in place of the log-probabilities."""
    num_words = scores.shape[1]
    if scores.device.type == "cuda":
        # A compiler joins this with the softmax into one kernel; a scatter would end it and store
        # the whole table once more.
        wanted = torch.arange(num_words, device=scores.device) == words
        return scores.exp() - torch.where(
            wanted, 1 - smoothing + smoothing / num_words, smoothing / num_words
        )
    slope = scores.exp_().sub_(smoothing / num_words)
    return slope.scatter_add_(1, words, torch.full_like(words, smoothing - 1, dtype=slope.dtype))
