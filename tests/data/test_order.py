import numpy as np
import pytest

from headwise.data.order import EpochOrder, permute
from headwise.data.shards import CorpusRange


@pytest.mark.parametrize("size", [1, 2, 3, 5, 16, 17, 97, 1024, 10_007])
def test_a_permutation_of_every_size(size: int) -> None:
    for seed in range(3):
        result = permute(np.arange(size), size, key=(seed, "test"))
        assert sorted(result.tolist()) == list(range(size))


def test_places_are_independent_of_each_other() -> None:
    whole = permute(np.arange(1009), 1009, key=(7,))
    assert permute(np.array([5, 997, 13]), 1009, key=(7,)).tolist() == whole[[5, 997, 13]].tolist()


def test_a_pair_lands_everywhere_alike() -> None:
    counts = np.zeros(11)
    for seed in range(2200):
        counts[permute(np.array([3]), 11, key=(seed,))[0]] += 1
    assert np.abs(counts - 200).max() < 5 * np.sqrt(200)


def test_neighbours_do_not_stay_together() -> None:
    result = permute(np.arange(10_007), 10_007, key=(1,))
    assert (np.abs(np.diff(result)) == 1).mean() < 0.002
    assert abs(np.corrcoef(np.arange(10_007), result)[0, 1]) < 0.05


def test_a_hundred_million_pairs_take_no_memory() -> None:
    order = EpochOrder((CorpusRange("big", 100_000_000),), seed=1)
    chunk = order.chunk(3, 4321)
    assert abs(len(chunk) - 16_384) <= 3
    assert len(np.unique(chunk)) == len(chunk)
    assert 0 <= chunk.min() < chunk.max() < 100_000_000


def epoch(order: EpochOrder, number: int) -> np.ndarray:
    return np.concatenate([order.chunk(number, chunk) for chunk in range(order.num_chunks)])


def test_each_pair_once_an_epoch_in_a_new_order() -> None:
    order = EpochOrder((CorpusRange("a", 30_011), CorpusRange("b", 10_009)), seed=2)
    assert order.num_chunks == 2
    first, second = epoch(order, 0), epoch(order, 1)
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(40_020))
    assert (first != second).mean() > 0.99
    assert (epoch(EpochOrder(order.corpora, seed=3), 0) != first).mean() > 0.99


def test_weights_say_how_often_a_pair_is_seen() -> None:
    order = EpochOrder(
        (CorpusRange("a", 101, 3.0), CorpusRange("b", 211, 0.5), CorpusRange("c", 53)), seed=2
    )
    assert order.size == 303 + 106 + 53
    counts = np.zeros(365)
    for number in range(4):
        counts += np.bincount(epoch(order, number), minlength=365)
    assert (counts[:101] == 12).all()
    # Half of b an epoch, taking turns: 4 x 106 over 211 pairs.
    assert set(counts[101:312]) <= {
        2,
        3,
    }
    assert (counts[312:] == 4).all()
