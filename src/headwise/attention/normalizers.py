"""Turns attention scores into weights, the second of attention's three steps: softmax, sparsemax,
entmax or hard. Keys that the mask hides get exactly zero.

    softmax    weights_j = exp(score_j − max) / Σ_k exp(score_k − max); every visible key gets
               a weight
    sparsemax  the point of the simplex nearest to the scores: max(score_j − τ, 0)
               (Martins & Astudillo 2016)
    entmax     between the two, α = 1.5: max(score_j / 2 − τ, 0)²
               (Peters, Niculae & Martins 2019)
    hard       all weight on the best key; it learns by one of two biased gradients:
               straight_through  the gradient of the softmax (Bengio et al. 2013)
               gumbel            while training, a key is *drawn* from softmax(score / temperature)
                                 by adding Gumbel noise, and the gradient is that of the noisy
                                 softmax (Jang et al. 2017; Maddison et al. 2017)

τ makes the weights sum to one. Sorted scores give it exactly: the keys with weight are the first
few, and one more joins them as long as its score lies above the τ of those before it. Everything is
computed in float32 at least. A query without a visible key gets zeros (not NaN) and a zero
gradient.

Tested against: torch.softmax over the visible keys alone; τ by bisection in double precision;
finite differences.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor

from headwise.attention.precision import widen
from headwise.settings.kind import Kind, Words


@runtime_checkable
class Normalizer(Protocol):
    """A function from scores to weights; `training` matters to those that draw."""

    def __call__(
        self,
        scores: Float[Tensor, "batch head query key"],
        allowed: Bool[Tensor, "#batch #head #query key"] | None,
        *,
        training: bool = False,
    ) -> Float[Tensor, "batch head query key"]: ...


def masked_softmax(
    scores: Float[Tensor, "batch head query key"],
    allowed: Bool[Tensor, "#batch #head #query key"] | None,
) -> Float[Tensor, "batch head query key"]:
    precise = widen(scores)
    if allowed is None:
        return precise.softmax(-1).to(scores.dtype)
    # The lowest finite number instead of -inf: a row without a visible key stays finite and is set
    # to zero afterwards.
    precise = precise.masked_fill(~allowed, torch.finfo(precise.dtype).min)
    return precise.softmax(-1).masked_fill(~allowed, 0.0).to(scores.dtype)


def _centre(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Scores relative to the best of their row, in float32 at least; masked scores, and those too
    low to get weight, are set to −3."""
    precise = widen(scores)
    if allowed is not None:
        precise = precise.masked_fill(~allowed, torch.finfo(precise.dtype).min)
    centred = (precise - precise.amax(-1, keepdim=True).detach()).clamp_min(-3.0)
    return centred if allowed is None else centred.masked_fill(~allowed, -3.0)


def _finish(weights: Tensor, allowed: Tensor | None, dtype: torch.dtype) -> Tensor:
    return (weights if allowed is None else weights.masked_fill(~allowed, 0.0)).to(dtype)


@dataclass(frozen=True)
class Softmax:
    def __call__(self, scores: Tensor, allowed: Tensor | None, *, training: bool = False) -> Tensor:
        return masked_softmax(scores, allowed)


@dataclass(frozen=True)
class Sparsemax:
    def __call__(
        self,
        scores: Float[Tensor, "batch head query key"],
        allowed: Bool[Tensor, "#batch #head #query key"] | None,
        *,
        training: bool = False,
    ) -> Float[Tensor, "batch head query key"]:
        z = _centre(scores, allowed)
        with torch.no_grad():
            ordered = z.sort(-1, descending=True).values
            rank = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
            above = 1 + rank * ordered > ordered.cumsum(-1)
            size = above.sum(-1, keepdim=True)
            support = z >= ordered.gather(-1, size.clamp_min(1) - 1)
        # The set of keys with weight changes in steps; for a fixed set, τ is a mean, and autograd
        # gives its derivative.
        threshold = ((z * support).sum(-1, keepdim=True) - 1) / support.sum(-1, keepdim=True)
        return _finish((z - threshold).clamp_min(0) * support, allowed, scores.dtype)


@dataclass(frozen=True)
class Entmax:
    """α = 1.5."""

    def __call__(
        self,
        scores: Float[Tensor, "batch head query key"],
        allowed: Bool[Tensor, "#batch #head #query key"] | None,
        *,
        training: bool = False,
    ) -> Float[Tensor, "batch head query key"]:
        z = _centre(scores, allowed) / 2
        with torch.no_grad():
            ordered = z.sort(-1, descending=True).values
            rank = torch.arange(1, z.shape[-1] + 1, device=z.device, dtype=z.dtype)
            mean = ordered.cumsum(-1) / rank
            spread = rank * (ordered.square().cumsum(-1) / rank - mean.square())
            above = mean - ((1 - spread) / rank).clamp_min(0).sqrt() <= ordered
            # Only the first decrease counts: a rounding error far behind the last key with weight
            # must not add others.
            size = above.cumprod(-1).sum(-1, keepdim=True)
            support = z >= ordered.gather(-1, size.clamp_min(1) - 1)
        count = support.sum(-1, keepdim=True)
        mean = (z * support).sum(-1, keepdim=True) / count
        spread = ((z - mean).square() * support).sum(-1, keepdim=True)
        # (1 − spread) / count = (mean − τ)², above zero because every key with weight lies above τ;
        # the bound is for rounding.
        threshold = mean - ((1 - spread) / count).clamp_min(1e-12).sqrt()
        return _finish((z - threshold).clamp_min(0).square() * support, allowed, scores.dtype)


@dataclass(frozen=True)
class Hard:
    gradient: Literal["straight_through", "gumbel"] = "straight_through"
    temperature: float = 1.0
    """Temperature of the softmax whose gradient is used and from which keys are drawn."""

    def __call__(
        self,
        scores: Float[Tensor, "batch head query key"],
        allowed: Bool[Tensor, "#batch #head #query key"] | None,
        *,
        training: bool = False,
    ) -> Float[Tensor, "batch head query key"]:
        precise = widen(scores) / self.temperature
        if training and self.gradient == "gumbel":
            # From torch's global generator, as for dropout: its seed was set from the key of the
            # training step.
            precise = (
                precise
                - torch.empty_like(precise)
                .exponential_()
                .clamp_min(torch.finfo(precise.dtype).tiny)
                .log()
            )
        soft = masked_softmax(precise, allowed)
        hidden_last = precise if allowed is None else precise.masked_fill(~allowed, -torch.inf)
        best = torch.zeros_like(soft).scatter(-1, hidden_last.argmax(-1, keepdim=True), 1.0)
        # soft − soft is zero to the last bit; it contributes only its gradient.
        return _finish(best + (soft - soft.detach()), allowed, scores.dtype)


class NormalizerKind(Kind):
    """Settings of one normalizer, and what it declares."""

    formula: ClassVar[Words]
    """What it does with the scores of a query, in a few words."""

    def build(self) -> Normalizer:
        raise NotImplementedError(f"{type(self).__name__} does not say what it builds")


class SoftmaxSettings(NormalizerKind):
    kind: Literal["softmax"] = "softmax"

    title: ClassVar[Words] = ("softmax: every key gets a weight", "softmax：每个键都有权重")
    summary: ClassVar[Words] = ("Every visible key gets a weight.", "每个可见的键都有权重。")
    paper: ClassVar[str] = ""
    formula: ClassVar[Words] = ("softmax over the keys", "对各键做 softmax")

    def build(self) -> Normalizer:
        return Softmax()


class SparsemaxSettings(NormalizerKind):
    kind: Literal["sparsemax"] = "sparsemax"

    title: ClassVar[Words] = ("sparsemax: low scores get zero", "sparsemax：低分的键为零")
    summary: ClassVar[Words] = (
        "Keys with low scores get a weight of exactly zero.",
        "分数低的键权重恰为零。",
    )
    paper: ClassVar[str] = "Martins & Astudillo 2016, From Softmax to Sparsemax"
    formula: ClassVar[Words] = ("sparsemax over the keys", "对各键做 sparsemax")

    def build(self) -> Normalizer:
        return Sparsemax()


class EntmaxSettings(NormalizerKind):
    """With α = 1.5."""

    kind: Literal["entmax"] = "entmax"

    title: ClassVar[Words] = ("entmax: in between", "entmax：介于其间")
    summary: ClassVar[Words] = (
        "Between softmax and sparsemax, α = 1.5.",
        "介于 softmax 与 sparsemax 之间，α = 1.5。",
    )
    paper: ClassVar[str] = "Peters, Niculae & Martins 2019, Sparse Sequence-to-Sequence Models"
    formula: ClassVar[Words] = ("entmax (α = 1.5) over the keys", "对各键做 entmax（α = 1.5）")

    def build(self) -> Normalizer:
        return Entmax()


class HardSettings(NormalizerKind):
    kind: Literal["hard"] = "hard"
    gradient: Literal["straight_through", "gumbel"] = "straight_through"
    """Which gradient is used: that of the softmax, or that of a softmax with noise."""
    temperature: float = Field(default=1.0, ge=1e-6, le=1e6, allow_inf_nan=False)
    """Temperature of that softmax."""

    title: ClassVar[Words] = ("hard: the best key alone", "hard：只取最好的键")
    summary: ClassVar[Words] = ("All weight on the best key.", "全部权重给最好的键。")
    paper: ClassVar[str] = "Bengio et al. 2013; Jang et al. 2017"
    formula: ClassVar[Words] = ("the best key alone", "只取最好的键")

    def build(self) -> Normalizer:
        return Hard(self.gradient, self.temperature)
