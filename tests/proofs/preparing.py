"""Prepares a made-up corpus in a process of its own and says how much memory that took, in KiB.

    python preparing.py DIRECTORY COUNT [keep]

Prints the high-water mark of resident memory after the first block of pairs and at the end. With
`keep` every pair is kept: the leak that the proof must be able to see.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from headwise.data.pairs import preparation
from headwise.data.pairs.choices import DataSettings
from headwise.data.pairs.filtering import FilterSettings
from headwise.data.pairs.parallel_files import Pair
from headwise.text.choices import SentencePieceSettings
from tests.proofs.streaming import high_water

WORDS = ("ab", "cde", "fghi", "jklmn", "opqrst", "uvwxyz", "aei", "oub")


def write_text(directory: Path, count: int) -> None:
    """Two files of `count` lines, all different."""
    for code, shift in (("en", 0), ("de", 3)):
        with (directory / f"text.{code}").open("w", encoding="utf-8") as file:
            for number in range(count):
                digits = [number >> (3 * place) & 7 for place in range(8)]
                file.write(" ".join(WORDS[(digit + shift) % 8] for digit in digits) + "\n")


def main(directory: Path, count: int, *, keep: bool) -> None:
    write_text(directory, count)
    kept = []
    if keep:
        cut_blocks = preparation.cut_blocks

        def hoard(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
            for block in cut_blocks(pairs):
                kept.append(block)
                yield block

        preparation.cut_blocks = hoard
    data = DataSettings(
        source="en",
        target="de",
        train=[str(directory / "text")],
        filter=FilterSettings(max_ratio=None),
    )
    text, marks = SentencePieceSettings(size=300, sample=2000), list[int]()
    prepared = preparation.prepare_data(
        data, text, directory / "data", progress=lambda stage, done: marks.append(high_water())
    )
    assert len(prepared.train) == count
    sys.stdout.write(f"{marks[0]} {high_water()}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), keep="keep" in sys.argv[3:])
