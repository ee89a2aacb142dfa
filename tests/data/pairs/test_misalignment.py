"""Lines are deleted at known places; the slip must be found within a few lines."""

import pytest

from headwise.data.pairs.misalignment import find_slip
from headwise.randomness import numpy_generator


def lengths(count: int) -> tuple[list[int], list[int]]:
    generator = numpy_generator("slips", count)
    source = generator.lognormal(3.8, 0.6, count)
    target = source * generator.lognormal(0.1, 0.2, count)
    return [int(n) + 1 for n in source], [int(n) + 1 for n in target]


@pytest.mark.parametrize("place", [0, 7, 211, 396])
@pytest.mark.parametrize("lost", [1, 3])
def test_a_deletion_is_found_where_it_happened(place: int, lost: int) -> None:
    source, target = lengths(401)
    del target[place : place + lost]
    assert abs(find_slip(source, target) - (place + 1)) <= 3
    assert abs(find_slip(target, source) - (place + 1)) <= 3


def test_an_empty_side_slips_at_once() -> None:
    assert find_slip([], [3, 5]) == 1


def test_equal_lines_leave_the_end_of_the_shorter_side() -> None:
    assert find_slip([4] * 11, [4] * 7) == 8
