import collections

import pydantic
import pytest

from headwise.data.splits import SplitSettings, part_of


def split(**changes) -> SplitSettings:
    return SplitSettings(**{"by": "en", "part": "train", **changes})


def test_parts_have_the_sizes_asked_for() -> None:
    counts = collections.Counter(
        part_of(f"sentence {n}", split(valid=3, test=2, of=20)) for n in range(20_000)
    )
    assert abs(counts["valid"] - 3000) < 5 * 3000**0.5
    assert abs(counts["test"] - 2000) < 5 * 2000**0.5


def test_a_sentence_stays_in_its_part_however_it_is_written() -> None:
    for number in range(200):
        parts = {
            part_of(text, split(valid=30, test=30))
            for text in (
                f"It's number {number}.",
                f"its NUMBER {number}",
                f"  It’s  number “{number}”!",
            )
        }
        assert len(parts) == 1


def test_something_must_be_left_to_train_on() -> None:
    with pytest.raises(pydantic.ValidationError, match="leaves nothing to train on"):
        split(valid=50, test=50)
