"""Sums in linear time against the table written out, with long lines: groups of groups, sentences
over several chunks."""

import pytest
import torch

from headwise.attention.linear import masked_products as products
from headwise.attention.linear.masked_products import carry, masked_products
from headwise.attention.masks import Mask, causal, padding, segments
from headwise.attention.segment_order import order_mask
from headwise.randomness import torch_generator


def _runs(*lengths: int) -> torch.Tensor:
    return torch.tensor([number for number, length in enumerate(lengths, 1) for _ in range(length)])


@pytest.mark.parametrize("group", [2, 3, 32])
def test_carry_sums_the_run_before(monkeypatch: pytest.MonkeyPatch, group: int) -> None:
    monkeypatch.setattr(products, "GROUP", group)
    generator = torch_generator("carry", group)
    values = torch.randn(2, 3, 29, 5, generator=generator, dtype=torch.float64)
    run = torch.stack([_runs(11, 1, 17), _runs(1, 26, 2)])
    expected = torch.zeros_like(values)
    for batch in range(2):
        for step in range(1, 29):
            same = run[batch, :step] == run[batch, step - 1]
            expected[batch, :, step] = values[batch, :, :step][:, same].sum(1)
    assert torch.allclose(carry(values, run), expected)
    assert torch.allclose(carry(values, torch.zeros_like(run)), carry(values, None))


@pytest.mark.parametrize("chunk", [2, 5, 7])
@pytest.mark.parametrize("offset", [None, 0, 3, -2])
def test_long_packed_rows_equal_the_table(chunk: int, offset: int | None) -> None:
    generator = torch_generator("products", chunk, str(offset))
    a, b, v = (
        torch.randn(2, 3, 61, size, generator=generator, dtype=torch.float64) for size in (5, 5, 7)
    )
    own = torch.stack([_runs(23, 1, 2, 31, 4), _runs(1, 1, 50, 9)])
    own[:, -3:] = 0
    other = torch.stack([_runs(10, 30, 1, 19, 1), _runs(20, 20, 2, 19)])
    real = torch.rand(2, 61, generator=generator) < 0.8
    order = Mask() if offset is None else causal(offset)
    for parts in (
        segments(own, own),
        segments(other, own),
        padding(real),
        segments(own, own) & segments(other, other),
    ):
        mask = order & parts & padding(real)
        lined = order_mask(mask, 61, 61, kind="linear")
        table = mask.dense(61, 61, a.device)
        expected = (a @ b.transpose(-2, -1) * table) @ v
        assert torch.allclose(masked_products(a, b, v, lined, chunk=chunk), expected)


def test_no_operation_makes_a_table_of_all_pairs() -> None:
    """Chunks of 8 over 4,096 places: the largest tensor on the way is a small multiple of the
    input, forward and backward."""
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                largest = max(largest, result.numel())
            return result

    a, b, v = (torch.randn(1, 1, 4096, 4, requires_grad=True) for _ in range(3))
    run = _runs(1000, 2096, 1000)[None]
    with Watch():
        for mask in (
            causal(),
            segments(run, run),
            causal() & segments(run, run),
            segments(run.clone(), run),
        ):
            masked_products(
                a, b, v, order_mask(mask, 4096, 4096, kind="linear"), chunk=8
            ).sum().backward()
    assert largest <= 4096 * 8 * 8
