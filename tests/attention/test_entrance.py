"""Tensors from outside: each mistake gets its sentence, whatever the kernel."""

import pytest
import torch

from headwise.attention import attend
from headwise.attention.full import FullAttention
from headwise.attention.masks import Mask, causal
from headwise.errors import UsageError
from headwise.randomness import torch_generator
from tests.laws.kernels import HEAD_DIM, KERNELS, Row

VALUE_DIM = 13


def draw(*lengths: int) -> list[torch.Tensor]:
    generator = torch_generator("entrance")
    widths = (HEAD_DIM, HEAD_DIM, VALUE_DIM)
    return [torch.randn(2, 3, *size, generator=generator) for size in zip(lengths, widths, strict=True)]


def test_good_ones_are_let_through() -> None:
    q, k, v = draw(5, 7, 7)
    torch.testing.assert_close(attend(q, k, v), FullAttention()(q, k, v, Mask()))
    torch.testing.assert_close(attend(q, k, v, mask=causal(2)), FullAttention()(q, k, v, causal(2)))


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
@pytest.mark.parametrize("number", [torch.nan, torch.inf, -torch.inf])
def test_what_is_no_number_is_named_with_its_place(row: Row, number: float) -> None:
    for name, tensors in zip("qkv", (draw(7, 7, 7) for _ in range(3)), strict=True):
        tensors["qkv".index(name)][1, 2, 6, 4] = number
        with pytest.raises(UsageError, match=rf"{name}\[1, 2, 6, 4\] is {number}; attention needs finite numbers"):
            attend(*tensors, kernel=row.build(0.0))


def test_what_would_overflow_is_refused() -> None:
    q, k, v = draw(5, 7, 7)
    with pytest.raises(UsageError, match=r"k\[0, 0, 0, 0\] is 3e\+20; .* up to 1e\+15 in queries and keys"):
        attend(q, k.new_full(k.shape, 3e20), v)
    assert attend(q, k, v * 1e30).isfinite().all()


def test_odd_shapes_are_refused() -> None:
    q, k, v = draw(5, 7, 7)
    for wrong in ((q[0], k, v), (torch.cat([q, q]), k, v), (q[:, :2], k, v), (q[..., :5], k, v), (q, k[:, :, 1:], v)):
        with pytest.raises(UsageError, match=r"queries, keys and values of shapes .* do not fit"):
            attend(*wrong)


def test_mixed_kinds_are_refused() -> None:
    q, k, v = draw(5, 7, 7)
    for wrong in ((q.double(), k, v), (q.long(), k.long(), v.long())):
        with pytest.raises(UsageError, match="must be of one floating type and on one device"):
            attend(*wrong)


@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_nothing_gives_nothing(row: Row) -> None:
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
