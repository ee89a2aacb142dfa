"""Batch normalisation: every feature is scaled to mean 0 and variance 1 over the tokens of a batch.

    y = (x − mean) / √(var + ε) · gain + shift
    mean, var: over the real tokens of the batch while training, running ones afterwards

Ioffe & Szegedy 2015. It is here for comparison: in language the statistics of batches differ so
much that those of training do not fit inference (Shen et al. 2020), and Transformers use layer
norm. Padding is left out of the statistics, and a batch without a real token changes none. Each of
several processes keeps its own statistics; a checkpoint has those of the first.

Tested against: torch's BatchNorm1d over the real tokens alone.
"""

from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from headwise.blocks.declaration import NormKind
from headwise.blocks.normalization import TokenNorm
from headwise.initialization import InitialWeights, ones, zeros
from headwise.settings.kind import Words


def mean_over_tokens(
    x: Float[Tensor, "*batch dim"], real: Bool[Tensor, "*batch"] | None
) -> tuple[Float[Tensor, " dim"], Float[Tensor, ""]]:
    """The mean over real tokens, and their number; zero if there are none."""
    flat = x.flatten(0, -2)
    if real is None:
        return flat.mean(0) if len(flat) > 0 else flat.sum(0), flat.new_full((), len(flat))
    weight = real.flatten().to(flat.dtype)
    count = weight.sum()
    # Not a product, which would keep a NaN of padding.
    return torch.where(real.flatten()[:, None], flat, 0.0).sum(0) / count.clamp(min=1.0), count


class BatchNorm(TokenNorm):
    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, dim: int, *, epsilon: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.epsilon, self.momentum = epsilon, momentum
        self.gain = nn.Parameter(torch.ones(dim))
        self.shift = nn.Parameter(torch.zeros(dim))
        self.register_buffer("running_mean", torch.zeros(dim))
        self.register_buffer("running_variance", torch.ones(dim))

    def initial_weights(self) -> InitialWeights:
        return [(self.gain, ones), (self.shift, zeros)]

    def forward(
        self, x: Float[Tensor, "*batch dim"], real: Bool[Tensor, "*batch"] | None = None
    ) -> Float[Tensor, "*batch dim"]:
        wide = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
        if self.training:
            mean, count = mean_over_tokens(wide, real)
            centred = wide - mean
            variance, _ = mean_over_tokens(centred.square(), real)
            with torch.no_grad():
                # A batch of padding alone must change nothing. The share is a tensor, because a
                # branch would have to wait for the device.
                share = self.momentum * (count > 0).to(self.running_mean)
                self.running_mean.lerp_(mean.to(self.running_mean), share)
                unbiased = variance * count / (count - 1).clamp(min=1.0)
                self.running_variance.lerp_(unbiased.to(self.running_variance), share)
        else:
            centred, variance = wide - self.running_mean, self.running_variance
        return (centred * (variance + self.epsilon).rsqrt() * self.gain + self.shift).to(x.dtype)


class Batch(NormKind):
    """Batch normalisation over tokens, for comparison."""

    kind: Literal["batch"] = "batch"
    epsilon: float = Field(default=1e-5, ge=1e-20, le=1)
    momentum: float = Field(default=0.1, gt=0, le=1)
    """The share of a batch in the running statistics."""

    title: ClassVar[Words] = ("batch norm", "批归一化")
    summary: ClassVar[Words] = (
        "Mean 0 and variance 1 of each feature over the tokens of a batch.",
        "使每个特征在一批词元上均值为 0、方差为 1。",
    )
    paper: ClassVar[str] = "Ioffe & Szegedy 2015, Batch Normalization"
    formula: ClassVar[str] = "(x − mean) / √(var + ε) · gain + shift"
    counts_tokens: ClassVar[bool] = True

    def build(self, *, dim: int) -> nn.Module:
        return BatchNorm(dim, epsilon=self.epsilon, momentum=self.momentum)
