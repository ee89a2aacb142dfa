"""Kernels made by hand: one nonsense for every size."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch

from headwise.attention.kernels.bigbird import BigBirdAttention
from headwise.attention.kernels.linformer import LinformerAttention
from headwise.attention.kernels.longformer import LongformerAttention
from headwise.attention.kernels.performer import PerformerAttention
from headwise.attention.kernels.reformer import ReformerAttention
from headwise.attention.kernels.window import WindowAttention
from headwise.attention.masks import Mask
from headwise.attention.size_checks import BoundedSize, check_sizes
from headwise.errors import UsageError
from headwise.randomness import torch_generator
from tests.laws.references import SharedQueryKey

hashed = partial(ReformerAttention, 8)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (
            lambda: LongformerAttention(0),
            "LongformerAttention was given window=0; an even number from 2 to",
        ),
        (lambda: LongformerAttention(3), "window=3; an even number"),
        (lambda: LongformerAttention(-2), "window=-2"),
        (lambda: LongformerAttention(4, -1), "num_global=-1; a whole number from 0 to"),
        (lambda: LongformerAttention(4, 0, dilation=0), "dilation=0; a whole number from 1 to"),
        (lambda: LongformerAttention(4, block=0), "block=0"),
        (
            lambda: LongformerAttention(4, 1, 3),
            "dilation=3 was given beside .*num_global=1.*num_global=0 or .*dilation=1",
        ),
        (lambda: WindowAttention(4, 4, block=0), "WindowAttention was given block=0"),
        (
            lambda: WindowAttention(-1, 2),
            "WindowAttention was given left=-1; a whole number from 0 to",
        ),
        (lambda: WindowAttention(3, -1), "right=-1; a whole number from 0 to"),
        (lambda: BigBirdAttention(0), "BigBirdAttention was given block=0"),
        (lambda: BigBirdAttention(2, 0), "num_window_blocks=0"),
        (lambda: BigBirdAttention(2, 1, -1), "num_global_blocks=-1"),
        (lambda: BigBirdAttention(2, 1, 1, -1), "num_random_blocks=-1"),
        (lambda: PerformerAttention(8, 0), "PerformerAttention was given num_features=0"),
        (lambda: PerformerAttention(8, 4, redraw_every=-1), "redraw_every=-1"),
        (lambda: LinformerAttention(0, 8), "LinformerAttention was given rank=0"),
        (lambda: LinformerAttention(4, 0), "max_length=0"),
        (
            lambda: LinformerAttention(9, 4),
            "rank=9 is over .*max_length=4.*set LinformerAttention.rank=4 or less",
        ),
        (
            lambda: hashed(num_buckets=0, num_rounds=1, window=2),
            "num_buckets=0; an even number from 2 to",
        ),
        (lambda: hashed(num_buckets=3, num_rounds=1, window=2), "num_buckets=3; an even number"),
        (
            lambda: hashed(num_buckets=2, num_rounds=0, window=2),
            "num_rounds=0; a whole number from 1 to 1,024",
        ),
        (lambda: hashed(num_buckets=2, num_rounds=1, window=0), "window=0"),
    ],
)
def test_nonsense_is_refused_where_it_is_given(build: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        build()


@pytest.mark.parametrize("given", [1.5, "a", torch.ones(2)], ids=repr)
def test_what_is_no_whole_number_is_no_size(given: object) -> None:
    with pytest.raises(
        UsageError,
        match=r"WindowAttention was given left=.*; a whole number from 0 to 1,073,741,824",
    ):
        check_sizes("WindowAttention", BoundedSize("left", given, least=0))
    check_sizes("WindowAttention", BoundedSize("left", np.int64(3)), BoundedSize("block", None))


def test_many_rounds_are_counted_right() -> None:
    """A pair that meets in 130 rounds is one key still; counted in eight bits it was none."""
    q, v = (torch.randn(1, 1, 7, 8, generator=torch_generator("rounds", name)) for name in "qv")
    output = hashed(num_buckets=1, num_rounds=130, window=8)(q, q, v, Mask())
    torch.testing.assert_close(output, SharedQueryKey()(q, q, v, Mask()))
