"""The kernels that must obey the laws: every kind as it declares itself, and harder variants of
them.

A new kernel needs no line here: its case is made from its own example settings. A row is written by
hand for sizes that no recipe has, and for the settings in which a kernel must equal another one
(`exact`). `pytest tests/laws -k <name>` runs every law over one of them.
"""

from collections.abc import Callable

import torch

from headwise.attention.choices import BUILT_IN, Full
from headwise.attention.kernels.bigbird import BigBirdAttention
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.kernels.linear import LinearAttention
from headwise.attention.kernels.linformer import LinformerAttention
from headwise.attention.kernels.longformer import LongformerAttention
from headwise.attention.kernels.performer import PerformerAttention, draw_features
from headwise.attention.kernels.reformer import ReformerAttention
from headwise.attention.kernels.scored import ScoredAttention
from headwise.attention.kernels.window import WindowAttention
from headwise.attention.local_position import LocalWindow, MonotonicWindow, PredictiveWindow
from headwise.attention.multi_head import Kernel
from headwise.attention.score_choices import build_normalizer, build_score
from headwise.initialization import initialize
from headwise.laws.case import HEAD_DIM, LawCase, case_of
from headwise.randomness import torch_generator
from headwise.settings import check_settings, read_yaml
from tests.laws.references import (
    QuadraticBounded,
    QuadraticLinear,
    QuadraticPerformer,
    SharedQueryKey,
)


def scored(
    text: str, *, window: Callable[[], LocalWindow | None] = lambda: None
) -> Callable[[float], Kernel]:
    """Builds full attention with the score and the weights that a recipe would name, filled from a
    fixed key."""
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


# A causal offset moves queries on.
KERNELS: tuple[LawCase, ...] = (
    *(case_of(kind.example(), name=f"{kind.word()}/as declared") for kind in BUILT_IN),
    LawCase("full", FullAttention, exact=lambda length: FullAttention(), takes_vectors=True),
    LawCase("fused", FusedAttention, exact=lambda length: FusedAttention()),
    LawCase(
        "window",
        lambda rate: WindowAttention(2, 1, rate, block=2),
        exact=lambda length: WindowAttention(2 * length, length, block=3),
        order_free=False,
    ),
    LawCase(
        "longformer",
        lambda rate: LongformerAttention(2, num_global=1, dropout_rate=rate, block=2),
        exact=lambda length: LongformerAttention(2 * length, num_global=2, block=3),
        refuses=("causal", "causal_offset"),
        order_free=False,
        square_only=True,
        unbroken=True,
    ),
    LawCase(
        "longformer/dilated",  # without global tokens: in a decoder too
        lambda rate: LongformerAttention(4, num_global=0, dilation=2, dropout_rate=rate, block=2),
        exact=lambda length: LongformerAttention(2 * length, num_global=0, block=3),
        refuses=("causal_offset",),
        order_free=False,
        square_only=True,
        unbroken=True,
    ),
    LawCase(
        "bigbird",
        lambda rate: BigBirdAttention(1, num_random_blocks=1, dropout_rate=rate),
        exact=lambda length: BigBirdAttention(length),
        refuses=("causal", "causal_offset"),
        order_free=False,
        square_only=True,
        unbroken=True,
    ),
    LawCase(
        "linear",
        lambda rate: LinearAttention(rate, chunk=2),
        exact=lambda length: LinearAttention(chunk=3),
        refuses=("window", "explicit"),
        takes_bias=False,
        reference=QuadraticLinear,
        more_terms=HEAD_DIM,  # its features
    ),
    LawCase(
        "performer",
        lambda rate: PerformerAttention(11, 17, dropout_rate=rate, chunk=2),
        exact=lambda length: PerformerAttention(11, 17, chunk=3),
        refuses=("window", "explicit"),
        takes_bias=False,
        # features; an exponent of size e is off by e roundings, and e is mostly below 8 here, on
        # either side
        more_terms=17,
        reference=lambda: QuadraticPerformer(draw_features(17, 11, torch_generator("performer"))),
    ),
    LawCase(
        "performer/bounded",
        lambda rate: PerformerAttention(11, 17, estimate="bounded", dropout_rate=rate, chunk=2),
        exact=lambda length: PerformerAttention(11, 17, estimate="bounded", chunk=3),
        refuses=("window", "explicit"),
        takes_bias=False,
        more_terms=17,
        reference=lambda: QuadraticBounded(draw_features(17, 11, torch_generator("performer"))),
    ),
    # The parts of full attention, two at a time: each is tested by itself in tests/attention.
    LawCase(
        "full/additive+entmax",
        scored("{score: {kind: additive, hidden: 5}, weights: {kind: entmax}}"),
        takes_vectors=True,
        exact=None,
    ),
    LawCase(
        "full/location+sparsemax",
        scored("{score: {kind: location, max_length: 11}, weights: {kind: sparsemax}}"),
        takes_vectors=True,
        exact=None,
        order_free=False,
    ),
    LawCase(
        "full/gaussian+hard",
        scored("{score: {kind: gaussian}, weights: {kind: hard}}"),
        takes_vectors=True,
        exact=None,
        continuous=False,
    ),
    LawCase(
        "full/bilinear+local_m",
        scored("{score: {kind: bilinear}}", window=lambda: MonotonicWindow(1)),
        takes_vectors=True,
        exact=lambda length: scored(
            "{score: {kind: bilinear}}", window=lambda: MonotonicWindow(length)
        )(0.0),
        order_free=False,
    ),
    LawCase(
        "full/local_p",
        local_p(2),
        takes_vectors=True,
        exact=lambda length: local_p(length, deviation=1e9)(0.0),
        order_free=False,
        continuous=False,
    ),
    LawCase(
        "linformer",
        _linformer_of_low_rank,
        exact=_linformer_of_full_rank,
        refuses=("causal", "causal_offset", "window", "explicit"),
        takes_bias=False,
        order_free=False,
        sums_to_one=False,
    ),
    LawCase(
        "reformer",
        lambda rate: ReformerAttention(
            HEAD_DIM, num_buckets=4, num_rounds=3, window=2, dropout_rate=rate
        ),
        exact=lambda length: ReformerAttention(
            HEAD_DIM, num_buckets=1, num_rounds=2, window=length
        ),
        refuses=("causal_offset", "window", "explicit"),
        takes_bias=False,
        order_free=False,
        continuous=False,
        square_only=True,
        shared=True,
        reference=SharedQueryKey,
    ),
)
