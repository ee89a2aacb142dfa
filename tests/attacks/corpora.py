"""Corpora as people really send them, and worse: pairs of files that are wrong each in its own way.

A case gives the bytes of both sides and what must come of it: how many pairs are kept, or part of
the message. Its argument says how huge the huge ones are: 10⁴ blank lines and bombs of 16 MB for 4,
10⁶ and 512 MB for 6.
"""

import gzip
import lzma
from collections.abc import Callable
from dataclasses import dataclass

NUM_PAIRS = 60
SOURCES = [f"the cat number {number} sleeps on the mat" for number in range(NUM_PAIRS)]
TARGETS = [f"die Katze Nummer {number} schläft auf der Matte" for number in range(NUM_PAIRS)]


def text(lines: list[str], end: str = "\n", encoding: str = "utf-8") -> bytes:
    return "".join(line + end for line in lines).encode(encoding)


def with_last(line: str) -> bytes:
    return text([*SOURCES[:-1], line])


@dataclass(frozen=True)
class Corpus:
    source: bytes
    target: bytes = text(TARGETS)
    kept: int | None = None
    """Pairs learnt from; None: refused."""
    said: str = ""
    """Part of the report or of the message."""
    suffix: str = ""


ZEROS = bytes(1 << 20)
BOMB_MEGABYTES = {4: 16, 6: 512}

CORPORA: dict[str, Callable[[int], Corpus]] = {
    "empty": lambda size: Corpus(b"", b"", said="is empty; a corpus needs at least one line"),
    "one side empty": lambda size: Corpus(text(SOURCES), b"", said="has 60 lines"),
    "one line short": lambda size: Corpus(text(SOURCES[:-1]), said="has 59 lines"),
    "a blank line too many": lambda size: Corpus(text(["", *SOURCES]), said="has 61 lines"),
    "CRLF": lambda size: Corpus(text(SOURCES, "\r\n"), kept=60),
    "byte order mark": lambda size: Corpus(b"\xef\xbb\xbf" + text(SOURCES), kept=60),
    "NUL": lambda size: Corpus(with_last("a\0b"), kept=59, said="control_characters"),
    "invalid UTF-8": lambda size: Corpus(
        text(SOURCES[:-1]) + b"caf\xe9 au lait\n", said=":60: byte"
    ),
    "lone surrogate": lambda size: Corpus(
        text(SOURCES[:-1]) + b"a \xed\xa0\x80 b\n", said=":60: byte"
    ),
    "UTF-16": lambda size: Corpus(text(SOURCES, encoding="utf-16"), said="looks like UTF-16"),
    "a line of a million characters": lambda size: Corpus(
        with_last("x" * 1_000_000), kept=59, said="long_line"
    ),
    "blank lines without end": lambda size: Corpus(
        text(SOURCES) + b"\n" * 10**size,
        text(TARGETS) + b"\n" * 10**size,
        kept=60,
        said=f'"empty": {10**size}',
    ),
    "duplicates": lambda size: Corpus(
        text(SOURCES * 3), text(TARGETS * 3), kept=60, said='"duplicate": 120'
    ),
    "no end of line at the end": lambda size: Corpus(text(SOURCES)[:-1], kept=60),
    "right-to-left marks": lambda size: Corpus(with_last("the \u202eelttil\u202c cat"), kept=60),
    "line separators inside": lambda size: Corpus(
        with_last("a\u2028b\x85c\x0bd"), kept=59, said="control_characters"
    ),
    "combining marks without end": lambda size: Corpus(
        with_last("e" + "\u0301" * 2000), kept=59, said="dropped"
    ),
    "gzip cut short": lambda size: Corpus(
        gzip.compress(text(SOURCES))[:-9],
        gzip.compress(text(TARGETS)),
        said="damaged or cut short",
        suffix=".gz",
    ),
    "gzip bomb": lambda size: Corpus(
        gzip.compress(ZEROS) * BOMB_MEGABYTES[size],
        gzip.compress(text(TARGETS)),
        said="lines",
        suffix=".gz",
    ),
    "xz bomb": lambda size: Corpus(
        lzma.compress(ZEROS) * BOMB_MEGABYTES[size],
        lzma.compress(text(TARGETS)),
        said="lines",
        suffix=".xz",
    ),
}
