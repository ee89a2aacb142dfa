"""Performer: the softmax itself by random features, without ever comparing a query with a key.

    exp(q · k) = E_w [ exp(w · q − |q|²/2) exp(w · k − |k|²/2) ],  w ~ N(0, I)        q and k scaled by head_dim^(-1/4)
    φ(x)       = exp(W x − |x|²/2),  W of `num_features` rows; then as linear attention (linear.py)

Choromanski et al. 2021, FAVOR+. Positive features never make a weight negative, as sines and cosines do where weights are small.
Rows of W are orthogonal in blocks of head_dim, each as long as a Gaussian vector would be (chi), which lowers the variance.

What the numbers need:
- A query's largest exponent is taken off all its features: it cancels in the quotient, and nothing overflows.
- A key's must not be: per key it would not cancel (the estimate is then biased and does not converge). The published form takes off
  the largest over all keys of the row, and adds 10⁻⁴ to what is left, by which a later word or a neighbour in the row would change
  the result. Here a key's features, whose mean is one, are taken as they are (exponents end at 60), and no key knows another.
- EPSILON is added to all features: it keeps sums from vanishing and pulls the weights a little towards equal ones, which costs less than
  the outliers of exp that it drowns. Relative error of random inputs (head_dim 32) for 16, 64, 256, 1,024 features: without it 1.96, 1.06,
  0.64, 0.31; with 0.003 1.90, 0.97, 0.53, 0.22; the published form 1.78, 0.90, 0.46, 0.19.
- W is drawn anew every `redraw_every` updates while training, so that a model does not learn the errors of one draw. The training loop
  calls `before_step`, which fills a buffer outside of any graph from (key, number of the draw): a resumed run draws the same. Outside
  training a first W serves for ever; it is stored with the weights.

Cost per head, n tokens, m features, d = head_dim, C = 128: 8 n m d operations (4 n m d of them the features), causal n (8 m d + 2 C (m + d));
bytes: n (2 m) features written and read. With m = 4 d full attention is overtaken in operations at n ≈ 8 d … 10 d.

Tested against: performer-pytorch with copied features; the squared error falls 1.8 × and more with 4 × the features; orthogonal features are the better ones.
"""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from headwise.attention.linear import FeatureAttention
from headwise.attention.masked_products import CHUNK
from headwise.attention.precision import widen
from headwise.attention.sizes import Size, check_sizes
from headwise.randomness import torch_generator

MOST = 60.0
"""Where a key's exponents end: exp(60) times a million values does not overflow in fp32."""
EPSILON = 5e-3
FARTHEST = 1e9
"""Where q and k end: the square of more would overflow, and so far out all features but one are gone anyway."""


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


def _exponents(x: Tensor, rows: Tensor) -> Tensor:
    x = widen(x).clamp(-FARTHEST, FARTHEST) * x.shape[-1] ** -0.25
    return x @ rows.to(x.dtype).mT - x.square().sum(-1, keepdim=True) / 2


class PerformerAttention(nn.Module, FeatureAttention):
    """`rows` is W for use, and for learning if nothing is redrawn; `drawn` is W of the present update."""

    kind: ClassVar[str] = "performer"
    rows: Tensor
    drawn: Tensor
    forward = FeatureAttention.attend

    def __init__(
        self,
        head_dim: int,
        num_features: int,
        *,
        redraw_every: int = 0,
        dropout_rate: float = 0.0,
        chunk: int = CHUNK,
    ) -> None:
        super().__init__()
        check_sizes(
            "PerformerAttention",
            Size("head_dim", head_dim),
            Size("num_features", num_features),
            Size("redraw_every", redraw_every, least=0, most=1 << 63),
            Size("chunk", chunk),
        )
        self.num_features, self.redraw_every, self.chunk = num_features, redraw_every, chunk
        self.dropout_rate = dropout_rate
        self._draw: tuple[str, int] | None = None
        rows = draw_features(num_features, head_dim, torch_generator("performer"))
        self.register_buffer("rows", rows)
        self.register_buffer("drawn", rows.clone(), persistent=False)

    @property
    def head_dim(self) -> int:
        return self.rows.shape[1]

    def before_step(self, step: int, *, key: str) -> None:
        """Called before update number `step` (from 1): W of this update, a function of the step and the key alone."""
        if self.redraw_every == 0:
            return
        draw = (key, (step - 1) // self.redraw_every)
        if draw != self._draw:
            rows = draw_features(self.num_features, self.head_dim, torch_generator("performer", *draw))
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
    ) -> tuple[Float[Tensor, "batch head query features"], Float[Tensor, "batch head key features"]]:
        rows = self._rows(training=training)
        return query_features(q, rows), key_features(k, rows)

    def num_features_of(self, head_dim: int) -> int:
        return self.num_features
