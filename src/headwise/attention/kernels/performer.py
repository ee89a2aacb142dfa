"""Performer: estimates softmax attention with random features, without comparing a query with a
key.

    exp(q · k) = E_w [ exp(w · q − |q|²/2) exp(w · k − |k|²/2) ],  w ~ N(0, I);
                 q and k scaled by head_dim^(-1/4)
    φ(x)       = exp(W x − |x|²/2),  W of `num_features` rows; then as linear attention (linear.py)

Choromanski et al. 2021, FAVOR+. Positive features never make a weight negative, as sines and
cosines do where weights are small. Rows of W are orthogonal in blocks of head_dim, and their
lengths are distributed as those of Gaussian vectors (chi), which lowers the variance.

Numerical stability:
- The largest exponent of a query is subtracted from all its features: it cancels in the quotient,
  and nothing overflows.
- Subtracting the largest exponent of each key would not cancel: the estimate would be biased and
  would not converge. The published form subtracts the largest exponent over all keys of the row and
  adds 10⁻⁴, so that a later token or another sentence of the row changes the result. Here the
  features of a key, whose mean is one, are not shifted (exponents are clipped at 60), and they do
  not depend on other keys.
- EPSILON is added to all features: it keeps sums above zero and reduces the effect of some outliers
  of exp. Relative squared error of short random inputs (head_dim 32, 128 keys, scale 0.7) for 16,
  64, 256, 1,024 features: without it 1.96, 1.06, 0.64, 0.31; with it 1.86, 0.93, 0.48, 0.19.

Limits of `estimate: unbiased`. The variance of one independent row of W relative to exp(q · k)² is
exp(|q + k|²) − 1: for normal inputs of scale s it is exp(2 s² √d), so that d = 64 and s = 1 would
need e¹⁶, nine million features. With fewer features, few keys get all the weight by chance, and the
error grows with the length of the row (relative error 4.0 at 2,048 keys, where the plain mean of
the values has 0.8). The estimate is unbiased before EPSILON and the quotient. The best Gaussian
features (Likhosherstov et al. 2022) need e¹¹·⁶ there, and measured no better.

`estimate: bounded` accepts a bias for an error below that of the plain mean (R² is
`squared_radius`):

    φ(x) = softmax(W x'),   x' = x / √(1 + |x|²/R²),   R² = (2 m / d)^⅓

Vectors are shortened into the ball in which m features can distinguish them. This makes the weights
more uniform than those of the softmax (the bias; R grows with m). The sum of exp(W x') estimates
exp(|x'|²/2), so dividing by it removes the length, as above, and the common part of the error with
it. Nothing can overflow, and the features of a token still depend on that token only.

W is drawn again every `redraw_every` updates while training (0: never). The training loop calls
`before_step`, which fills a buffer outside of any graph from (key, number of the draw), so that a
resumed run draws the same. Outside training the first W is used; it is stored with the weights. A
model that was trained with few draws has fitted their errors and loses more by another W than by
the estimate itself (docs/experiments/attention-kernels.md); so either never redraw, or redraw every
few updates.

Cost per head, n tokens, m features, d = head_dim, C = 128: 8 n m d operations (4 n m d of them for
the features), causal n (8 m d + 2 C (m + d)); memory traffic: n (2 m) features written and read.
With m = 4 d it takes fewer operations than full attention from n ≈ 8 d … 10 d on.

Tested against: performer-pytorch with copied features; the squared error falls by 1.8 × and more
with 4 × the features; orthogonal features have the smaller error; bounded is nearer than the mean
of the values at every scale in rows of 2,048.
"""

from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from headwise.attention.capabilities import (
    ROW_MASKS,
    VIEW_NEEDS,
    AttentionKind,
    KernelSize,
    MaskPart,
)
from headwise.attention.kernels.linear import FeatureAttention
from headwise.attention.linear.masked_products import CHUNK
from headwise.attention.multi_head import Kernel, Need
from headwise.attention.precision import widen
from headwise.attention.size_checks import BoundedSize, check_sizes
from headwise.randomness import torch_generator
from headwise.settings.kind import Words

Estimate = Literal["unbiased", "bounded"]

MOST = 60.0
"""Upper bound of a key's exponents: exp(60) times a million values does not overflow in fp32."""
EPSILON = 5e-3
FARTHEST = 1e9
"""Upper bound of |q| and |k|: larger squares would overflow, and all features but one would be
zero."""


def draw_features(
    num_features: int, head_dim: int, generator: torch.Generator
) -> Float[Tensor, "num_features head_dim"]:
    """Rows orthogonal in blocks of `head_dim`, lengths as of Gaussian vectors."""
    cpu = torch.device("cpu")
    num_blocks = -(-num_features // head_dim)
    shape = (num_blocks, head_dim, head_dim)
    blocks = torch.randn(shape, generator=generator, dtype=torch.float64, device=cpu)
    lengths = torch.randn(shape, generator=generator, dtype=torch.float64, device=cpu).norm(dim=-1)
    rows = torch.linalg.qr(blocks).Q.mT * lengths[..., None]
    return rows.flatten(0, 1)[:num_features].float()


def query_features(
    q: Float[Tensor, "batch head query head_dim"],
    rows: Float[Tensor, "num_features head_dim"],
    *,
    epsilon: float = EPSILON,
) -> Float[Tensor, "batch head query num_features"]:
    exponents = _exponents(q, rows)
    return epsilon + (exponents - exponents.amax(-1, keepdim=True)).exp()


def key_features(
    k: Float[Tensor, "batch head key head_dim"],
    rows: Float[Tensor, "num_features head_dim"],
    *,
    epsilon: float = EPSILON,
) -> Float[Tensor, "batch head key num_features"]:
    return epsilon + _exponents(k, rows).clamp(max=MOST).exp()


def bounded_features(
    x: Float[Tensor, "batch head time head_dim"], rows: Float[Tensor, "num_features head_dim"]
) -> Float[Tensor, "batch head time num_features"]:
    """The features of a query or a key sum to one."""
    x = _scale(x)
    x = x * (1 + x.square().sum(-1, keepdim=True) / squared_radius(*rows.shape)).rsqrt()
    return (x @ rows.to(x.dtype).mT).softmax(-1)


def squared_radius(num_features: int, head_dim: int) -> int | float:
    """Upper bound of |x|²: the best of nine sizes and five scales of random inputs, within a few
    hundredths (docs/experiments/attention-kernels.md). It grows with the number of features, so
    that the estimate converges to the softmax."""
    return (2 * num_features / head_dim) ** (1 / 3)


def _scale(x: Tensor) -> Tensor:
    return widen(x).clamp(-FARTHEST, FARTHEST) * x.shape[-1] ** -0.25


def _exponents(x: Tensor, rows: Tensor) -> Tensor:
    x = _scale(x)
    return x @ rows.to(x.dtype).mT - x.square().sum(-1, keepdim=True) / 2


class PerformerAttention(nn.Module, FeatureAttention):
    """`rows` is W for inference, and for training if nothing is redrawn; `drawn` is W of the
    present update."""

    kind: ClassVar[str] = "performer"
    rows: Tensor
    drawn: Tensor
    forward = FeatureAttention.attend

    def __init__(
        self,
        head_dim: int,
        num_features: int,
        *,
        estimate: Estimate = "unbiased",
        redraw_every: int = 0,
        dropout_rate: float = 0.0,
        chunk: int = CHUNK,
    ) -> None:
        super().__init__()
        check_sizes(
            "PerformerAttention",
            BoundedSize("head_dim", head_dim),
            BoundedSize("num_features", num_features),
            BoundedSize("redraw_every", redraw_every, least=0, most=1 << 63),
            BoundedSize("chunk", chunk),
        )
        self.num_features, self.redraw_every, self.chunk = num_features, redraw_every, chunk
        self.estimate = estimate
        self.dropout_rate = dropout_rate
        self._draw: tuple[str, int] | None = None
        rows = draw_features(num_features, head_dim, torch_generator("performer"))
        self.register_buffer("rows", rows)
        self.register_buffer("drawn", rows.clone(), persistent=False)

    @property
    def head_dim(self) -> int:
        return self.rows.shape[1]

    def before_step(self, step: int, *, key: str) -> None:
        """Called before update number `step` (from 1): sets W of this update, a function of the
        step and the key only."""
        if self.redraw_every == 0:
            return
        draw = (key, (step - 1) // self.redraw_every)
        if draw != self._draw:
            rows = draw_features(
                self.num_features, self.head_dim, torch_generator("performer", *draw)
            )
            self.drawn.copy_(rows)
            self._draw = draw

    def _rows(self, *, training: bool) -> Tensor:
        return self.drawn if training and self.redraw_every > 0 else self.rows

    def features(
        self,
        q: Float[Tensor, "batch head query head_dim"],
        k: Float[Tensor, "batch head key head_dim"],
        *,
        training: bool,
    ) -> tuple[
        Float[Tensor, "batch head query features"], Float[Tensor, "batch head key features"]
    ]:
        rows = self._rows(training=training)
        if self.estimate == "bounded":
            return bounded_features(q, rows), self.num_features * bounded_features(k, rows)
        return query_features(q, rows), key_features(k, rows)

    def num_features_of(self, head_dim: int) -> int:
        return self.num_features


class Performer(AttentionKind):
    """The softmax estimated by random features: linear time, also in a decoder."""

    kind: Literal["performer"] = "performer"
    num_features: int = Field(default=256, ge=1, le=65536)
    """More features give a smaller error, by the square root of their number where queries and keys
    are short."""
    estimate: Estimate = "unbiased"
    """`unbiased`, the published one, is right in the mean over draws and far off where queries and
    keys are long; `bounded` shortens them to what the features can distinguish."""
    redraw_every: int = Field(default=0, ge=0, le=1 << 30)
    """Number of updates after which new features are drawn while training; 0 keeps the first ones,
    which are also used after training."""

    title: ClassVar[Words] = ("Performer", "Performer")
    summary: ClassVar[Words] = (
        "The softmax estimated by random features: more features, nearer to full.",
        "用随机特征估计 softmax：特征越多，越接近全注意力。",
    )
    paper: ClassVar[str] = "Choromanski et al. 2021, Rethinking Attention with Performers"
    cost: ClassVar[str] = "n · h · (12 · num_features · d + 2 · chunk · (num_features + d))"
    memory: ClassVar[str] = "n · h · (2 · chunk + 12 · num_features + 3 · d)"
    masks: ClassVar[frozenset[MaskPart]] = ROW_MASKS
    num_extra_terms: ClassVar[int] = 64

    @classmethod
    def example(cls) -> "Performer":
        return cls(num_features=64)

    @property
    def size(self) -> KernelSize:
        return KernelSize(("random features", "随机特征数"), self.num_features)

    def resize(self, size: int) -> "Performer":
        return self.model_copy(update={"num_features": size})

    @property
    def takes(self) -> frozenset[Need]:
        return VIEW_NEEDS

    @property
    def cost_terms(self) -> dict[str, int | float]:
        return super().cost_terms | {"chunk": CHUNK}

    def build_kernel(self, *, head_dim: int, dropout_rate: float) -> Kernel:
        return PerformerAttention(
            head_dim,
            self.num_features,
            estimate=self.estimate,
            redraw_every=self.redraw_every,
            dropout_rate=dropout_rate,
        )
