"""Made-up systems: references with words dropped, swapped and changed by a known rate."""

import pytest

from headwise.randomness import numpy_generator

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "saw",
    "two",
    "red",
    "birds",
    "over",
    "there",
    ",",
    "while",
    "it",
    "slept",
    ".",
]


def write_references(num: int) -> list[str]:
    generator = numpy_generator("references")
    return [" ".join(generator.choice(WORDS, size=generator.integers(4, 13))) for _ in range(num)]


def spoil(texts: list[str], rate: float, seed: int) -> list[str]:
    generator = numpy_generator(seed, "spoil")
    return [
        " ".join(
            word if generator.random() > rate else generator.choice(WORDS) for word in text.split()
        )
        for text in texts
    ]


@pytest.fixture(name="references")
def _references() -> list[str]:
    return write_references(101)


@pytest.fixture(name="systems")
def _systems(references: list[str]) -> dict[str, list[str]]:
    return {
        "good": spoil(references, 0.1, 1),
        "also_good": spoil(references, 0.1, 2),
        "bad": spoil(references, 0.4, 3),
    }
