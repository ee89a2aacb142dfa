"""Measures how long translators take from text to text, at several batch sizes.

    for each round:  for each batch size:  for each translator:  translate the same texts

The time includes everything that a user waits for: tokenising, predicting lengths, the search, and
putting the text together. The translators take turns inside a round, and another one begins each
round, so that a busy machine slows all of them alike. One untimed round comes first, with
all batch sizes, so that recorded steps and caches exist. At batch size 1 each sentence is a call of
its own; the median of these calls is the latency.

Tested with a clock that is moved by hand.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from headwise.language import say
from headwise.tasks.events import Events

Translate = Callable[[Sequence[str], int], object]
"""Translates texts in batches of this many sentences."""
MIN_TIMED = 32
"""Fewest sentences that are timed at a batch size."""
MIN_BATCHES = 2


@dataclass(frozen=True)
class Speed:
    """What was measured of one row."""

    latency: float
    """Seconds of a sentence by itself: the median."""
    sentences_per_second: Mapping[int, float]


def texts_for(texts: Sequence[str], size: int) -> list[str]:
    """The texts that are timed at a batch size: at least two batches. They are repeated if there
    are too few.
    """
    return list(islice(cycle(texts), max(MIN_TIMED, MIN_BATCHES * size)))


def time_in_turns(
    rows: Sequence[Translate],
    texts: Sequence[str],
    *,
    batches: Sequence[int],
    rounds: int,
    events: Events,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Speed]:
    """The speed of each row; batch size 1 is always measured."""
    sizes = sorted({1, *batches})
    given = {size: texts_for(texts, size) for size in sizes}
    single: list[list[float]] = [[] for _ in rows]
    seconds: list[dict[int, list[float]]] = [{size: [] for size in sizes} for _ in rows]
    turns = list(_turns(len(rows), sizes, rounds))
    for done, (number, size, row) in enumerate(turns):
        label = say(f"batch size {size}", f"批大小 {size}")
        events.count(say(f"{label}; measurements", f"{label}；测量"), done, len(turns))
        took = [
            _seconds(rows[row], one, size, clock)
            for one in ([[text] for text in given[size]] if size == 1 else [given[size]])
        ]
        if number > 0:  # round 0 warms up
            seconds[row][size].append(sum(took))
            single[row] += took if size == 1 else []
    events.count(say("measurements", "测量"), len(turns), len(turns))
    return [
        Speed(
            statistics.median(single[row]),
            {size: len(given[size]) / statistics.median(seconds[row][size]) for size in sizes},
        )
        for row in range(len(rows))
    ]


def _turns(num_rows: int, sizes: Sequence[int], rounds: int) -> Iterator[tuple[int, int, int]]:
    """(round, batch size, row) in the order of measuring."""
    for number in range(rounds + 1):
        for size in sizes:
            for place in range(num_rows):
                yield number, size, (place + number) % num_rows


def _seconds(
    translate: Translate, texts: Sequence[str], size: int, clock: Callable[[], float]
) -> float:
    began = clock()
    translate(texts, size)
    return max(clock() - began, 1e-9)
