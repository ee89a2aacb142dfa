"""Tensors from outside: each mistake gets its sentence, whatever the kernel."""

import pytest
import torch

from headwise.attention import attend
from headwise.attention.biases import DistanceBias, VectorBias
from headwise.attention.checked_attention import AnyBias, check_mask, check_tensor
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.linear import LinearAttention
from headwise.attention.kernels.longformer import LongformerAttention
from headwise.attention.kernels.reformer import ReformerAttention
from headwise.attention.masks import Mask, causal, explicit, padding, segments
from headwise.attention.multi_head import Fitted
from headwise.errors import MaskError, UsageError
from headwise.laws.case import HEAD_DIM, LawCase
from headwise.randomness import torch_generator
from tests.laws.kernels import KERNELS

VALUE_DIM = 13
ONES = torch.ones(1, 7, dtype=torch.bool)


def draw(*lengths: int) -> list[torch.Tensor]:
    generator = torch_generator("entrance")
    widths = (HEAD_DIM, HEAD_DIM, VALUE_DIM)
    return [
        torch.randn(2, 3, *size, generator=generator) for size in zip(lengths, widths, strict=True)
    ]


def test_good_ones_are_let_through() -> None:
    q, k, v = draw(5, 7, 7)
    torch.testing.assert_close(attend(q, k, v), FullAttention()(q, k, v, Mask()))
    torch.testing.assert_close(attend(q, k, v, mask=causal(2)), FullAttention()(q, k, v, causal(2)))


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf])
def test_what_is_no_number_is_named_with_its_place(row: LawCase, number: float) -> None:
    for name, tensors in zip("qkv", (draw(7, 7, 7) for _ in range(3)), strict=True):
        tensors["qkv".index(name)][1, 2, 6, 4] = number
        with pytest.raises(
            UsageError, match=rf"{name}\[1, 2, 6, 4\] is {number}; attention needs finite numbers"
        ):
            attend(*tensors, kernel=row.build(0.0))


def test_what_would_overflow_is_refused() -> None:
    q, k, v = draw(5, 7, 7)
    with pytest.raises(
        UsageError, match=r"k\[0, 0, 0, 0\] is 3e\+20; .* up to 1e\+15 in queries and keys"
    ):
        attend(q, k.new_full(k.shape, 3e20), v)
    assert attend(q, k, v * 1e30).isfinite().all()


def test_odd_shapes_are_refused() -> None:
    q, k, v = draw(5, 7, 7)
    for wrong in (
        (q[0], k, v),
        (torch.cat([q, q]), k, v),
        (q[:, :2], k, v),
        (q[..., :5], k, v),
        (q, k[:, :, 1:], v),
    ):
        with pytest.raises(UsageError, match=r"queries, keys and values of shapes .* do not fit"):
            attend(*wrong)


def test_mixed_kinds_are_refused() -> None:
    q, k, v = draw(5, 7, 7)
    for wrong in ((q.double(), k, v), (q.long(), k.long(), v.long())):
        with pytest.raises(UsageError, match="must be of one floating type and on one device"):
            attend(*wrong)


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_nothing_gives_nothing(row: LawCase) -> None:
    for num_batch, num_queries, num_keys in ((0, 5, 5), (2, 0, 0), (2, 0, 5), (2, 5, 0)):
        q, k, v = (
            torch.zeros(num_batch, 3, *shape, requires_grad=True)
            for shape in ((num_queries, HEAD_DIM), (num_keys, HEAD_DIM), (num_keys, VALUE_DIM))
        )
        output = attend(q, k, v, kernel=row.build(0.0), mask=causal())
        assert output.shape == (num_batch, 3, num_queries, VALUE_DIM)
        assert output.eq(0).all()
        output.sum().backward()
        assert q.grad is not None


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_masks_that_do_not_fit_are_refused(row: LawCase) -> None:
    q, k, v = draw(7, 7, 7)
    ones, numbers = torch.ones(2, 5, dtype=torch.bool), torch.ones(2, 5, dtype=torch.long)
    for mask, needed in (
        (padding(ones), r"padding\(…\) has the shape \[2, 5\], and \[2, 7\] is needed"),
        (
            causal() & padding(torch.ones(3, 7, dtype=torch.bool)),
            r"padding.*\[3, 7\], and \[2, 7\]",
        ),
        (segments(numbers, numbers), r"segments\(…\) has the shape \[2, 5\]"),
        (
            explicit(torch.ones(1, 1, 5, 5, dtype=torch.bool)),
            r"explicit.*\[1, 1, 5, 5\], and \[2, 3, 7, 7\]",
        ),
    ):
        with pytest.raises(MaskError, match=needed):
            attend(q, k, v, kernel=row.build(0.0), mask=mask)


def test_words_are_no_tensor() -> None:
    with pytest.raises(
        UsageError,
        match=r"q is a str, and a tensor \[batch, head, time, head_dim\] is needed; convert it",
    ):
        check_tensor("q", "a")


def test_global_tokens_under_a_causal_mask_are_refused_with_both_ways_out() -> None:
    with pytest.raises(
        MaskError, match=r"kind=full, .*window in a decoder, or build it with num_global=0"
    ):
        attend(*draw(7, 7, 7), kernel=LongformerAttention(4, 1), mask=causal())


def test_a_table_is_no_mask() -> None:
    with pytest.raises(UsageError, match=r"the mask is a Tensor.*write explicit\(table\)"):
        check_mask(torch.ones(1, 1, 7, 7), (1, 1, 7, 7))


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_heads_of_another_width_are_refused_or_computed(row: LawCase) -> None:
    q, k, v = draw(7, 7, 7)
    with pytest.raises(UsageError, match="queries have 0 numbers a head"):
        attend(q[..., :0], k[..., :0], v, kernel=row.build(0.0))
    kernel = row.build(0.0)
    if not isinstance(kernel, Fitted) or kernel.head_dim is None:
        assert attend(q[..., :3], q[..., :3], v, kernel=kernel).isfinite().all()
        return
    with pytest.raises(
        UsageError,
        match=rf"queries have 3 numbers a head, and {HEAD_DIM} are needed by \w+Attention",
    ):
        attend(q[..., :3], k[..., :3], v, kernel=kernel)


@pytest.mark.parametrize(
    "row", [row for row in KERNELS if not row.shared], ids=lambda row: row.name
)
def test_a_batch_of_one_is_for_all(row: LawCase) -> None:
    q, k, v = (x.double() for x in draw(7, 7, 7))
    one, kernel = q[:1, :1], row.build(0.0)
    whole = attend(one.expand_as(q).contiguous(), k, v, kernel=kernel)
    torch.testing.assert_close(attend(one, k, v, kernel=kernel), whole)
    assert attend(q[:, :0], k[:, :0], v[:, :0], kernel=kernel).shape == (2, 0, 7, VALUE_DIM)


@pytest.mark.parametrize(
    ("bias", "message"),
    [
        (torch.full((2, 3, 5, 7), torch.nan), r"bias\[0, 0, 0, 0\] is nan"),
        (
            torch.full((1, 1, 1, 7), torch.inf),
            r"bias\[0, 0, 0, 0\] is inf; .* or -inf where a key is hidden",
        ),
        (
            torch.full((1, 1, 1, 7), 3e38),
            r"bias\[0, 0, 0, 0\] is 3e\+38; a bias is a number up to 1e\+30",
        ),
        (torch.zeros(2, 3, 7, 5), r"of shape \[2, 3, 7, 5\].*of shape \[2, 3, 5, 7\]"),
        (torch.zeros(5, 7), r"of shape \[5, 7\]"),
        (torch.zeros(2, 3, 5, 7, dtype=torch.long), r"the bias is torch\.int64"),
        (DistanceBias(torch.zeros(2, 9), -4), r"of shape \[2, 9\].*of shape \[3, 9\]"),
        (DistanceBias(torch.full((3, 9), torch.nan), -4), r"bias\[0, 0\] is nan"),
        (
            VectorBias(torch.zeros(2, 3, 5, 7), torch.full((9, 11), torch.nan), -4),
            r"bias\.values\[0, 0\] is nan",
        ),
    ],
)
def test_a_bias_is_looked_at_too(bias: AnyBias, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        attend(*draw(5, 7, 7), kernel=FullAttention(), bias=bias)


def test_good_biases_are_let_through() -> None:
    q, k, v = draw(5, 7, 7)
    table = torch.randn(1, 3, 1, 7, generator=torch_generator("bias"))
    table[..., 2] = -torch.inf
    expected = FullAttention()(q, k, v, Mask(), bias=table)
    torch.testing.assert_close(attend(q, k, v, bias=table), expected)
    assert attend(q, k, v, bias=DistanceBias(torch.zeros(3, 9), -4)).isfinite().all()


@pytest.mark.parametrize(
    ("mask", "name", "table", "message"),
    [
        (
            padding(ONES),
            "real",
            ONES.float(),
            r"padding\(…\) holds torch\.float32, and truth values .*\.bool\(\)",
        ),
        (
            explicit(ONES[None, None]),
            "allowed",
            ONES[None, None].long(),
            r"explicit\(…\) holds torch\.int64, and truth",
        ),
        (
            segments(ONES.long(), ONES.long()),
            "key",
            ONES.float(),
            r"segments\(…\) holds torch\.float32, and whole numbers",
        ),
        (
            segments(ONES.long(), ONES.long()),
            "key",
            ONES,
            r"segments\(…\) holds torch\.bool, and whole .*\.long\(\)",
        ),
    ],
)
def test_masks_of_another_kind_are_refused(
    mask: Mask, name: str, table: torch.Tensor, message: str
) -> None:
    # Where types are checked as they are given, it cannot be made.
    object.__setattr__(mask.parts[0], name, table)
    with pytest.raises(MaskError, match=message):
        attend(*draw(7, 7, 7), mask=mask)


def test_an_answer_that_is_no_number_is_refused() -> None:
    q, k, v = draw(7, 7, 7)
    with pytest.raises(
        UsageError,
        match=r"the output is not finite: values up to 3\.4e\+38 are too large for LinearAttention",
    ):
        attend(q, k, v.new_full(v.shape, 3.4e38), kernel=LinearAttention())


def test_shared_queries_and_keys_must_be_the_same() -> None:
    q, k, v = draw(7, 7, 7)
    kernel = ReformerAttention(HEAD_DIM, num_buckets=2, num_rounds=2, window=4)
    with pytest.raises(
        UsageError,
        match=r"keys that are not its queries.* take kernel=FusedAttention\(\)",
    ):
        attend(q, k, v, kernel=kernel)
    torch.testing.assert_close(attend(q, q, v, kernel=kernel), kernel(q, q, v, Mask()))
