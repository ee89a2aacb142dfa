"""Preparing needs the memory of a sample and a few blocks, however large the corpus, and 8 bytes a
pair for duplicates.

Each preparation runs in a process of its own (preparing.py), because a high-water mark never falls;
it is read after the first block and at the end. The measure is shown to see a leak: with every pair
kept, the bound is broken. `benchmarks/bench_data.py --pairs 100_000_000` is the same at full size.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPARE = 32 << 20
BYTES_A_PAIR = 3 * 8
"""A hash, and one and a half more of them while two runs are merged."""


def grows_within_bounds(directory: Path, count: int, *extra: str) -> bool:
    """Whether memory grew from the first block to the end by no more than the hashes."""
    directory.mkdir()
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "tests" / "proofs" / "preparing.py"),
            str(directory),
            str(count),
            *extra,
        ],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    first, last = (1024 * int(number) for number in done.stdout.split())
    return last - first < BYTES_A_PAIR * count + SPARE


def test_a_hundred_thousand_pairs_take_little_more_than_the_first_block(tmp_path: Path) -> None:
    assert grows_within_bounds(tmp_path / "made", 100_000)


@pytest.mark.prove
def test_two_million_pairs_take_what_their_hashes_take(tmp_path: Path) -> None:
    assert grows_within_bounds(tmp_path / "made", 2_000_000)
    assert not grows_within_bounds(tmp_path / "kept", 200_000, "keep"), (
        "a leak of the pairs would be seen"
    )
