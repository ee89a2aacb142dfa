"""A hash table against a binary search."""

import numpy as np
import pytest

from headwise.models.ngram.lookup import KeyIndex
from headwise.randomness import numpy_generator


def _search(keys: np.ndarray, wanted: np.ndarray) -> list[int]:
    places = {int(key): place for place, key in enumerate(keys)}
    return [places.get(int(key), -1) for key in wanted]


@pytest.mark.parametrize("num_keys", [0, 1, 2, 1009])
@pytest.mark.parametrize("built", [False, True])
def test_every_key_is_found_and_no_other(num_keys: int, built: bool) -> None:
    generator = numpy_generator(3, "keys", num_keys)
    keys = np.unique(generator.integers(0, 1 << 60, size=num_keys))
    wanted = np.concatenate([generator.permutation(keys), generator.integers(0, 1 << 60, size=503)])
    index = KeyIndex(keys)
    if built and num_keys:
        index.build()
    assert index.find(wanted).tolist() == _search(keys, wanted)


def test_keys_that_want_one_slot_find_room() -> None:
    """Multiples of a power of two times the inverse of the factor all begin in few slots."""
    keys = np.sort(
        np.array(
            [pow(0x9E3779B97F4A7C15, -1, 1 << 64) * number % (1 << 62) for number in range(1, 400)]
        )
    )
    index = KeyIndex(np.unique(keys))
    index.build()
    assert index.find(index.keys).tolist() == list(range(len(index.keys)))


def test_many_questions_build_the_table_by_themselves() -> None:
    keys = np.arange(0, 30_000, 3)
    wanted = np.arange(30_000)
    found = KeyIndex(keys).find(wanted)
    assert (found[::3] == np.arange(10_000)).all()
    assert (found[1::3] == -1).all()
