"""Texts made to be slow (S8): splitting, tokenising and joining take time linear in the length."""

import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from headwise.serving.work.loaded_models import LoadedModel
from headwise.text.sentence_splitting import split_text

ATTACKS: dict[str, Callable[[int], str]] = {
    "one letter": lambda n: "a" * n,
    "nested brackets": lambda n: "(" * (n // 2) + ")" * (n // 2),
    "combining marks": lambda n: "e" + "\u0301" * (n - 1),
    "joined emoji": lambda n: "\U0001f469\u200d" * (n // 2),
    "full stops": lambda n: "." * n,
    "abbreviations": lambda n: "Dr. " * (n // 4),
    "quotes and stops": lambda n: '."' * (n // 2),
    "spaces": lambda n: " " * n,
    "lines": lambda n: "a\n" * (n // 2),
    "Chinese stops": lambda n: "\u3002" * n,
    "marks of word starts": lambda n: "\u2581" * n,
}
SLOWEST_CHARACTER = 100e-6
"""Seconds of this thread, on a slow machine; a quadratic way takes far more of them at 100,000
characters."""


def seconds_for(models: dict[str, LoadedModel], text: str) -> float:
    """Of this thread's own time, the least of three."""
    tokenizer = models["tiny"].value.tokenizers.source
    found = []
    for _ in range(3):
        start = time.thread_time()
        page = split_text(text, language="en")
        for sentence in page.sentences:
            tokenizer.decode(tokenizer.encode(sentence))
        page.join(list(page.sentences), target="de")
        found.append(time.thread_time() - start)
    return min(found)


@pytest.mark.parametrize("name", ATTACKS)
def test_time_grows_with_the_length_and_not_with_its_square(
    models: dict[str, LoadedModel], name: str
) -> None:
    lengths = (1_000, 4_000)
    short, long = (seconds_for(models, ATTACKS[name](length)) for length in lengths)
    # Four times the length: 16 times the time if it were the square; what is measured in
    # microseconds may be all noise.
    assert long < 10 * short + 0.005
    assert long < lengths[1] * SLOWEST_CHARACTER


@pytest.mark.prove
@pytest.mark.parametrize("name", ATTACKS)
def test_a_hundred_thousand_characters(models: dict[str, LoadedModel], name: str) -> None:
    """Far beyond what a request may hold (2,000); t(2n) / t(n) < 2.5 from the length on at which it
    can be measured."""
    times = [seconds_for(models, ATTACKS[name](length)) for length in (25_000, 50_000, 100_000)]
    assert all(later < 2.5 * earlier + 0.01 for earlier, later in pairwise(times)), times
    assert times[-1] < 100_000 * SLOWEST_CHARACTER
