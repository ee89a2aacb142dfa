"""Translates a stream in a process of its own and says how much memory that took, in KiB.

    python streaming.py BUNDLE COUNT WINDOW [keep]

Prints the high-water mark of resident memory after the first window and at the end. With `keep`
every translation is kept: the leak that the proof must be able to see.
"""

import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from headwise.decoding.generation_settings import Batching
from headwise.decoding.search.greedy import GreedySettings
from headwise.tasks.translation.translator import Translator

WORDS = ("ab", "cde", "fghi", "jklmn", "opqrst")


def sentences(count: int) -> Iterator[str]:
    """Short sentences that are made when they are asked for; every window has the same lengths."""
    for number in range(count):
        length = 1 + number % 7
        yield " ".join(WORDS[(number // 7 + place * place) % len(WORDS)] for place in range(length))


def high_water() -> int:
    """The largest resident memory of this program. `getrusage` would not do on Linux: its mark is
    inherited from the process that started this one, so a large test runner hides a small leak."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(
            line
            for line in status.read_text(encoding="utf-8").splitlines()
            if line.startswith("VmHWM:")
        )
        return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(bundle: str, count: int, window: int, *, keep: bool) -> None:
    torch.set_num_threads(1)
    translator = Translator.load(bundle, device="cpu")
    settings = GreedySettings(max_length=5, batching=Batching(window=window, sentences=window))
    kept, first = [], 0
    for number, translation in enumerate(translator.stream(sentences(count), settings), 1):
        if keep:
            kept.append(translation)
        if number == window:
            first = high_water()
    assert number == count
    sys.stdout.write(f"{first} {high_water()}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), keep="keep" in sys.argv[4:])
