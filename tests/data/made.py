"""Stores and files for tests: lengths like those of real sentence pairs, tokens that name their
pair.
"""

from pathlib import Path

import numpy as np
from benchmarks.made_data import write_store

from headwise.data.shards import TokenStore
from headwise.randomness import numpy_generator


def draw_lengths(
    count: int, *, key: str, mean: float = 14.0, longest: int = 60
) -> tuple[np.ndarray, np.ndarray]:
    """Log-normal source lengths, target lengths in proportion with noise: what captions and chats
    look like.
    """
    generator = numpy_generator("lengths", key)
    source = np.exp(generator.normal(np.log(mean), 0.45, count))
    target = source * np.exp(generator.normal(0.04, 0.2, count))
    return tuple(np.clip(np.round(side), 1, longest).astype(int) for side in (source, target))


def draw_pairs(
    count: int, *, key: str = "pairs", **lengths: float
) -> list[tuple[list[int], list[int]]]:
    """Pairs that are all different: the first source token counts up, the rest is random."""
    generator = numpy_generator("tokens", key)
    source, target = draw_lengths(count, key=key, **lengths)
    return [
        (
            [4 + number, *generator.integers(4, 60_000, s - 1).tolist()],
            generator.integers(4, 60_000, t).tolist(),
        )
        for number, (s, t) in enumerate(zip(source, target, strict=True))
    ]


def make_store(
    directory: Path, pairs: list[tuple[list[int], list[int]]], *, block: int = 509
) -> TokenStore:
    return write_store(
        directory, pairs, vocabulary_sizes={"source": 60_000, "target": 60_000}, block=block
    )


def write_lines(path: Path, lines: list[str], *, end: str = "\n") -> Path:
    path.write_bytes("".join(line + end for line in lines).encode())
    return path
