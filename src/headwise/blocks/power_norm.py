"""Power normalisation: every feature is divided by its root mean square over many batches.

    z = x̂ / √(ψ² + ε),   y = z · gain + shift      x̂: x divided by its own root mean square
    ψ² ← a ψ² + (1 − a) · mean over real tokens of x̂²,  a = 0.9

    backward:  x̂' = (z' − ν z) / √(ψ² + ε),   ν ← ν (1 − (1 − b) Γ) + (1 − b) Λ,  b = 0.9
               Γ = mean of z²,  Λ = mean of z' z;  x̂' and z' are gradients of the loss

Shen et al. 2020 (PowerNorm). No mean is subtracted. During a warm-up the statistics of the batch
are used. Afterwards training divides by the same running number as inference, which batch norm does
not. Because ψ depends on all earlier batches, the exact derivative would run through them; ν is a
running estimate of it. Padding counts in neither.

As in the paper, the backward pass divides by the ψ of the forward pass (the authors' code divides
by that of the batch). In the warm-up ψ² is the plain mean of all batches so far. All statistics are
saved buffers that are changed in place, so that a resumed run has the same bits and a step can be
recorded as a CUDA graph. Each of several processes keeps its own statistics; a checkpoint has those
of the first.

Tested against: the formulas written out step by step, padding that changes nothing, an affine map
in inference.
"""

from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from headwise.blocks.batch_norm import mean_over_tokens
from headwise.blocks.declaration import NormKind
from headwise.blocks.normalization import TokenNorm
from headwise.initialization import InitialWeights, ones, zeros
from headwise.settings.kind import Words


class _DivideByRoot(torch.autograd.Function):
    """z = x / root, with the approximate derivative; the backward pass updates `nu`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, root: Tensor, nu: Tensor, real: Tensor | None, decay: float
    ) -> Tensor:
        z = x / root
        ctx.save_for_backward(z, root, real)
        # Kept as an attribute and not saved for backward, because it is changed in place.
        ctx.nu, ctx.decay = nu, decay
        return z

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None, None]:
        (gradient,) = gradients
        z, root, real = ctx.saved_tensors
        # Padding has no part in ψ, so its derivative has no part in the correction.
        corrected = gradient - ctx.nu * (z if real is None else z * real[..., None])
        # ν (1 − (1 − b) Γ) + (1 − b) Λ: the mean of z times the corrected gradient is Λ − ν Γ.
        moved, _ = mean_over_tokens(corrected * z, real)
        ctx.nu.add_(moved, alpha=1 - ctx.decay)
        return corrected / root, None, None, None, None


class PowerNorm(TokenNorm):
    running_square: Tensor
    gradient_mean: Tensor
    num_batches: Tensor

    def __init__(
        self, dim: int, *, epsilon: float = 1e-5, decay: float = 0.9, warmup: int = 4000
    ) -> None:
        super().__init__()
        self.epsilon, self.decay, self.warmup = epsilon, decay, warmup
        self.gain = nn.Parameter(torch.ones(dim))
        self.shift = nn.Parameter(torch.zeros(dim))
        self.register_buffer("running_square", torch.ones(dim))
        self.register_buffer("gradient_mean", torch.zeros(dim))
        self.register_buffer("num_batches", torch.zeros((), dtype=torch.long))

    def warn_of_training(self, num_batches: int) -> Words | None:
        """Of one that ends during the warm-up: it never divides by the running statistics."""
        if self.warmup < num_batches:
            return None
        enough = num_batches // 4
        return (
            f"norm.kind={Power.word()} warms up for {self.warmup:,} batches, but this training has "
            f"{num_batches:,}: the running statistics used at inference would never be used in "
            f"training; set model.norm.warmup={enough} (a quarter), or train longer",
            f"norm.kind={Power.word()} 预热 {self.warmup:,} 批，而本次训练只有 {num_batches:,} 批："
            f"推断时所用的滑动统计在训练中从未用到；请设 model.norm.warmup={enough}（四分之一），"
            "或延长训练",
        )

    def initial_weights(self) -> InitialWeights:
        return [(self.gain, ones), (self.shift, zeros)]

    def forward(
        self, x: Float[Tensor, "*batch dim"], real: Bool[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch dim"]:
        wide = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
        wide = wide * (wide.square().mean(-1, keepdim=True) + self.epsilon).rsqrt()
        if self.training:
            root = self._next_root(wide.detach(), real)
            z = _DivideByRoot.apply(wide, root, self.gradient_mean, real, self.decay)
        else:
            z = wide * (self.running_square.to(wide.dtype) + self.epsilon).rsqrt()
        return (z * self.gain + self.shift).to(x.dtype)

    @torch.no_grad()
    def _next_root(self, x: Tensor, real: Tensor | None) -> Float[Tensor, " dim"]:
        """The divisor of this batch: the root mean square of the batch in the warm-up, afterwards
        the running one. Then both are updated.

        A batch without a real token is not counted, and divided by the running number.
        """
        square, count = mean_over_tokens(x.square(), real)
        has_tokens = count > 0
        self.num_batches.add_(has_tokens.to(self.num_batches))
        is_warming = (self.num_batches <= self.warmup) & has_tokens
        used = torch.where(is_warming, square, self.running_square.to(square))
        # The share is a tensor, because a branch would have to wait for the device.
        share = (
            torch.where(is_warming, 1.0 / self.num_batches.clamp(min=1), 1.0 - self.decay)
            * has_tokens
        )
        self.running_square.lerp_(square.to(self.running_square), share.to(self.running_square))
        return (used + self.epsilon).sqrt()


class Power(NormKind):
    """Power normalisation: divides by running root mean squares of features over tokens."""

    kind: Literal["power"] = "power"
    epsilon: float = Field(default=1e-5, ge=1e-20, le=1)
    decay: float = Field(default=0.9, gt=0, lt=1)
    """The share of the old value when the running statistics are updated."""
    warmup: int = Field(default=4000, ge=0, le=10**12)
    """Number of batches in which the statistics of the batch itself are used."""

    title: ClassVar[Words] = ("power norm", "幂归一化")
    summary: ClassVar[Words] = (
        "Each feature divided by its running root mean square over tokens.",
        "每个特征除以其在词元上的滑动均方根。",
    )
    paper: ClassVar[str] = (
        "Shen et al. 2020, PowerNorm: Rethinking Batch Normalization in Transformers"
    )
    formula: ClassVar[str] = "x / ψ · gain + shift"
    counts_tokens: ClassVar[bool] = True

    def build(self, *, dim: int) -> nn.Module:
        return PowerNorm(dim, epsilon=self.epsilon, decay=self.decay, warmup=self.warmup)
