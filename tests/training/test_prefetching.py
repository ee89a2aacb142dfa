import threading
import time
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from headwise.training.prefetching import Prefetcher, map_tensors
from tests.training.tiny import TinyBatches

CPU = torch.device("cpu")


def test_same_order_and_cursors_as_the_stream():
    batches = TinyBatches(num_batches=11)
    with Prefetcher(batches, {"epoch": 0, "index": 3}, device=CPU, depth=2) as source:
        taken = []
        while (item := source.take()) is not None:
            taken.append(item)
        assert source.take() is None
    expected = list(batches.stream({"epoch": 0, "index": 3}))
    assert [cursor for _, cursor in taken] == [cursor for _, cursor in expected]
    assert all(
        torch.equal(mine.words, theirs.words)
        for (mine, _), (theirs, _) in zip(taken, expected, strict=True)
    )


class Failing(TinyBatches):
    def stream(self, cursor):
        yield next(super().stream(cursor))
        raise OSError("the corpus went away")


def test_errors_reach_the_consumer_in_order():
    with Prefetcher(Failing(), None, device=CPU) as source:
        assert source.take() is not None
        with pytest.raises(OSError, match="the corpus went away"):
            source.take()
        assert source.take() is None


def test_closing_an_endless_stream_ends_the_thread():
    before = threading.active_count()
    start = time.monotonic()
    with Prefetcher(TinyBatches(), None, device=CPU, depth=1) as source:
        source.take()
    assert threading.active_count() == before
    assert time.monotonic() - start < 5


@dataclass(frozen=True)
class Nested:
    x: Tensor
    rest: tuple
    name: str


def test_map_tensors_keeps_the_structure():
    nested = Nested(torch.ones(2), (torch.ones(1), {"a": [torch.ones(3)]}), "words")
    doubled = map_tensors(nested, lambda tensor: tensor * 2)
    assert doubled.name == "words"
    assert doubled.x.tolist() == [2, 2]
    assert doubled.rest[0].tolist() == [2]
    assert doubled.rest[1]["a"][0].tolist() == [2, 2, 2]
