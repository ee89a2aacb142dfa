"""The cache: what was written can be read, rows follow their hypotheses, dropped rows make room."""

import pytest
import torch
from torch import Tensor

from headwise.attention.cache import KeyValueCache
from headwise.errors import UsageError

ROWS, HEADS, HEAD_DIM, MAX_LENGTH = 6, 3, 5, 7


def make() -> KeyValueCache:
    return KeyValueCache.empty(
        max_length=MAX_LENGTH,
        num_rows=ROWS,
        num_heads=HEADS,
        head_dim=HEAD_DIM,
        like=torch.zeros(1, dtype=torch.float64),
    )


def draw(num_steps: int, generator: torch.Generator, rows: int = ROWS) -> tuple[Tensor, Tensor]:
    shape = (rows, HEADS, num_steps, HEAD_DIM)
    return (
        torch.randn(shape, generator=generator, dtype=torch.float64),
        torch.randn(shape, generator=generator, dtype=torch.float64),
    )


def test_reads_back_all_that_was_appended(generator: torch.Generator) -> None:
    cache, (k, v) = make(), draw(5, generator)
    assert cache.keys.dtype == torch.float64
    cache.append(k[:, :, :2], v[:, :, :2])
    keys, values = cache.append(k[:, :, 2:], v[:, :, 2:])
    assert keys.equal(k)
    assert values.equal(v)
    assert cache.length == 5


def test_rows_follow_a_reorder_again_and_again(generator: torch.Generator) -> None:
    cache, expected_k, expected_v = make(), *draw(0, generator)
    for _ in range(MAX_LENGTH):
        k, v = draw(1, generator)
        keys, values = cache.append(k, v)
        expected_k, expected_v = (
            torch.cat([expected_k, k], dim=2),
            torch.cat([expected_v, v], dim=2),
        )
        assert keys.equal(expected_k)
        assert values.equal(expected_v)
        index = torch.randint(0, ROWS, (ROWS,), generator=generator)
        cache.reorder(index)
        expected_k, expected_v = expected_k[index], expected_v[index]


def test_fewer_rows_drop_the_others(generator: torch.Generator) -> None:
    cache, (k, v) = make(), draw(3, generator)
    cache.append(k, v)
    cache.reorder(torch.tensor([5, 0, 5, 2]))
    more_k, more_v = draw(1, generator, rows=4)
    keys, _ = cache.append(more_k, more_v)
    assert keys.equal(torch.cat([k[[5, 0, 5, 2]], more_k], dim=2))
    cache.reorder(torch.tensor([3, 1, 1, 0]))
    cache.reorder(torch.tensor([1]))
    last_k, last_v = draw(1, generator, rows=1)
    keys, values = cache.append(last_k, last_v)
    assert keys.shape == (1, HEADS, 5, HEAD_DIM)
    assert keys[:, :, :3].equal(k[[0]])
    assert values[:, :, 3:4].equal(more_v[[1]])
    assert values[:, :, 4:].equal(last_v)


def test_steady_reorders_use_two_buffers_and_no_more(generator: torch.Generator) -> None:
    cache = make()
    cache.append(*draw(2, generator))
    order, addresses = torch.arange(ROWS).flip(0), set()
    for _ in range(5):
        cache.reorder(order)
        addresses.add(cache.keys.data_ptr())
    assert len(addresses) == 2


def test_no_room_is_an_error_and_not_a_silent_loss(generator: torch.Generator) -> None:
    cache = make()
    cache.append(*draw(MAX_LENGTH, generator))
    with pytest.raises(
        UsageError, match="room for 7 positions and 8 are needed; start with a larger max_length"
    ):
        cache.append(*draw(1, generator))
