"""The table of attention kernels that must obey the laws. A new kernel is ONE ROW here.

To add a kernel, append a `Row` to `KERNELS`:

    Row("window", lambda rate: WindowAttention(3, rate), exact=lambda length: WindowAttention(length), refuses=(...))

- `build` takes a dropout rate and gives the kernel with ordinary settings (a small window, a low rank, few buckets).
- `exact` takes a length and gives the kernel set so that it must equal full attention on sequences of that length:
  a window at least that long, the full rank, one bucket. None if there is no such setting.
- `reference` is what `exact` must equal: full attention, unless the kernel's weights are of another kind (linear attention
  equals its own table of products).
- `refuses` lists the masks of `scenes.PARTS` the kernel cannot honour. It must raise MaskError for them, in a message that
  names a kernel of this table that can; all other laws then leave those masks out.
- `takes_bias`, `order_free` (does the order of the keys not matter when the mask follows it?) and `continuous` (does a small change of
  the input change the output a little? not where a best key is chosen or a window's edge moves) are True for most.
- A kernel of parts may have several rows, named `kind/part`.
- `square_only`: it knows only self-attention, as many queries as keys.
- `unbroken`: a sentence must stand in one stretch of its row; scenes then number them so.
- `shared`: keys are the queries (Reformer); scenes then give the same vectors for both.
- `more_terms`: how many numbers it adds up beyond the scores and the means of full attention (features, say), each with its rounding.

Then `pytest tests/laws -k <name>` runs every law of `laws.py` over it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from headwise.attention.choices import Full
from headwise.attention.kernels.bigbird import BigBirdAttention
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.kernels.linear import LinearAttention
from headwise.attention.kernels.linformer import LinformerAttention
from headwise.attention.kernels.longformer import LongformerAttention
from headwise.attention.kernels.performer import PerformerAttention, draw_features
from headwise.attention.kernels.reformer import HashedAttention
from headwise.attention.kernels.scored import ScoredAttention
from headwise.attention.kernels.window import WindowAttention
from headwise.attention.local_position import LocalWindow, MonotonicWindow, PredictiveWindow
from headwise.attention.multi_head import Kernel
from headwise.attention.score_choices import build_normalizer, build_score
from headwise.initialization import initialize
from headwise.randomness import torch_generator
from headwise.settings import check_settings, read_yaml
from tests.laws.references import (
    QuadraticBounded,
    QuadraticLinear,
    QuadraticPerformer,
    SharedQueryKey,
)

HEAD_DIM = 11
"""Of the scenes; kernels with weights are built for it."""


@dataclass(frozen=True)
class Row:
    name: str
    build: Callable[[float], Kernel]
    exact: Callable[[int], Kernel] | None
    refuses: tuple[str, ...] = ()
    takes_bias: bool = True
    order_free: bool = True
    square_only: bool = False
    reference: Callable[[], Any] = FullAttention
    continuous: bool = True
    shared: bool = False
    unbroken: bool = False
    more_terms: int = 0

    @property
    def kind(self) -> str:
        return self.name.partition("/")[0]


def scored(
    text: str, *, window: Callable[[], LocalWindow | None] = lambda: None
) -> Callable[[float], Kernel]:
    """Builds full attention with the score and the weights that a recipe would name, filled from a fixed key."""
    settings = check_settings(Full, read_yaml(text))
    assert isinstance(settings, Full)

    def build(rate: float) -> Kernel:
        score = build_score(settings.score, query_dim=HEAD_DIM, key_dim=HEAD_DIM)
        kernel = ScoredAttention(
            score, build_normalizer(settings.weights), window=window(), dropout_rate=rate
        ).double()
        initialize(kernel, torch_generator("laws", text))
        return kernel

    return build


def local_p(half_width: int, deviation: float | None = None) -> Callable[[float], Kernel]:
    return scored(
        "{}", window=lambda: PredictiveWindow(HEAD_DIM, half_width=half_width, deviation=deviation)
    )


def _linformer_of_low_rank(rate: float) -> Kernel:
    kernel = LinformerAttention(5, 31, dropout_rate=rate, chunk=2)
    for parameter in kernel.parameters():
        torch.nn.init.normal_(parameter, std=0.4, generator=torch_generator("linformer"))
    return kernel


def _linformer_of_full_rank(length: int) -> Kernel:
    kernel = LinformerAttention(length, length, sharing="keys_values", chunk=3)
    torch.nn.init.eye_(kernel.key_summary)
    return kernel


KERNELS: tuple[Row, ...] = (
    Row("full", FullAttention, exact=lambda length: FullAttention()),
    Row("fused", FusedAttention, exact=lambda length: FusedAttention()),
    Row(
        "window",
        lambda rate: WindowAttention(2, 1, rate, block=2),
        exact=lambda length: WindowAttention(
            2 * length, length, block=3
        ),  # a causal offset moves queries on
        order_free=False,
    ),
    Row(
        "longformer",
        lambda rate: LongformerAttention(2, num_global=1, dropout_rate=rate, block=2),
        exact=lambda length: LongformerAttention(2 * length, num_global=2, block=3),
        refuses=("causal", "causal_offset"),
        order_free=False,
        square_only=True,
        unbroken=True,
    ),
    Row(
        "longformer/dilated",  # without global tokens: in a decoder too
        lambda rate: LongformerAttention(4, num_global=0, dilation=2, dropout_rate=rate, block=2),
        exact=lambda length: LongformerAttention(2 * length, num_global=0, block=3),
        refuses=("causal_offset",),
        order_free=False,
        square_only=True,
        unbroken=True,
    ),
    Row(
        "bigbird",
        lambda rate: BigBirdAttention(1, num_random_blocks=1, dropout_rate=rate),
        exact=lambda length: BigBirdAttention(length),
        refuses=("causal", "causal_offset"),
        order_free=False,
        square_only=True,
        unbroken=True,
    ),
    Row(
        "linear",
        lambda rate: LinearAttention(rate, chunk=2),
        exact=lambda length: LinearAttention(chunk=3),
        refuses=("window", "explicit"),
        takes_bias=False,
        reference=QuadraticLinear,
        more_terms=HEAD_DIM,  # its features
    ),
    Row(
        "performer",
        lambda rate: PerformerAttention(11, 17, dropout_rate=rate, chunk=2),
        exact=lambda length: PerformerAttention(11, 17, chunk=3),
        refuses=("window", "explicit"),
        takes_bias=False,
        more_terms=17,  # features; an exponent of size e is off by e roundings, and e is mostly below 8 here, on either side
        reference=lambda: QuadraticPerformer(draw_features(17, 11, torch_generator("performer"))),
    ),
    Row(
        "performer/bounded",
        lambda rate: PerformerAttention(11, 17, estimate="bounded", dropout_rate=rate, chunk=2),
        exact=lambda length: PerformerAttention(11, 17, estimate="bounded", chunk=3),
        refuses=("window", "explicit"),
        takes_bias=False,
        more_terms=17,
        reference=lambda: QuadraticBounded(draw_features(17, 11, torch_generator("performer"))),
    ),
    # The parts of full attention, two at a time: each is tested by itself in tests/attention.
    Row(
        "full/additive+entmax",
        scored("{score: {kind: additive, hidden: 5}, weights: {kind: entmax}}"),
        exact=None,
    ),
    Row(
        "full/location+sparsemax",
        scored("{score: {kind: location, max_length: 11}, weights: {kind: sparsemax}}"),
        exact=None,
        order_free=False,
    ),
    Row(
        "full/gaussian+hard",
        scored("{score: {kind: gaussian}, weights: {kind: hard}}"),
        exact=None,
        continuous=False,
    ),
    Row(
        "full/bilinear+local_m",
        scored("{score: {kind: bilinear}}", window=lambda: MonotonicWindow(1)),
        exact=lambda length: scored(
            "{score: {kind: bilinear}}", window=lambda: MonotonicWindow(length)
        )(0.0),
        order_free=False,
    ),
    Row(
        "full/local_p",
        local_p(2),
        exact=lambda length: local_p(length, deviation=1e9)(0.0),
        order_free=False,
        continuous=False,
    ),
    Row(
        "linformer",
        _linformer_of_low_rank,
        exact=_linformer_of_full_rank,
        refuses=("causal", "causal_offset", "window", "explicit"),
        takes_bias=False,
        order_free=False,
    ),
    Row(
        "reformer",
        lambda rate: HashedAttention(
            HEAD_DIM, num_buckets=4, num_rounds=3, window=2, dropout_rate=rate
        ),
        exact=lambda length: HashedAttention(HEAD_DIM, num_buckets=1, num_rounds=2, window=length),
        refuses=("causal_offset", "window", "explicit"),
        takes_bias=False,
        order_free=False,
        continuous=False,
        square_only=True,
        shared=True,
        reference=SharedQueryKey,
    ),
)
