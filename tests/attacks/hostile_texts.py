"""Lines that programs stumble over, drawn at random: controls, directions, joiners, marks of our
own, bytes that are no text."""

import random
from collections.abc import Callable

WORDS = (
    "the",
    "dog",
    "is",
    "old.",
    "Das",
    "Tier",
    "müde",
    "那只",
    "动物",
    "没有",
    "过马路",
    "它",
    "страны",
    "ہے",
    "ไทย",
    "한국어",
)
MARKS = (
    "▁",
    "\uf8fd",
    "\uf8fe",
    "\uf8fe0",
    "\uf8fe1",
    "<unk>",
    "</s>",
    "<s>",
    "<pad>",
    "<0x41>",
    "⁇",
    "��",
    "|||",
    "%s",
    "{}",
)
INVISIBLE = (
    "\u200b",
    "\u200d",
    "\u2060",
    "\ufeff",
    "\u202e",
    "\u2066",
    "\u00ad",
    "\u180e",
    "\U000e0041",
    "\ufe0f",
)
SPACES = (
    " ",
    "  ",
    "\u00a0",
    "\u3000",
    "\u2009",
    "\t",
    "\u2028",
    "\u2029",
    "\x85",
    "\x0b",
    "\x0c",
    "\r",
)
CONTROLS = (
    "\x00",
    "\x01",
    "\x07",
    "\x08",
    "\x1b[31m",
    "\x1a",
    "\x7f",
    "\x9b",
    "\ufffe",
    "\uffff",
    "\U0010ffff",
)
RUNS: tuple[Callable[[int], str], ...] = (
    lambda n: "a" * n,
    lambda n: "e" + "\u0301" * n,
    lambda n: "\U0001f469\u200d" * (n // 2),
    lambda n: "▁" * n,
    lambda n: "." * n,
    lambda n: "(" * n,
    lambda n: "9" * n,
    lambda n: "𠀀" * n,
    lambda n: "ﷺ" * n,
    lambda n: " " * n,
    lambda n: "İß" * (n // 2),
)
NO_TEXT = (
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xc0\xaf",
    b"\xfe\xfe",
    b"\xe4\xb8",
)


def draw_line(draw: random.Random, *, longest: int) -> str:
    """One line of valid Unicode without a line feed, of at most about `longest` characters."""
    parts: list[str] = []
    for _ in range(draw.randint(0, 12)):
        kind = draw.random()
        if kind < 0.45:
            parts.append(draw.choice(WORDS) + draw.choice(("", " ")))
        elif kind < 0.8:
            parts.append(draw.choice(draw.choice((MARKS, INVISIBLE, SPACES, CONTROLS))))
        elif kind < 0.92:
            parts.append("".join(_any_character(draw) for _ in range(draw.randint(1, 9))))
        else:
            parts.append(draw.choice(RUNS)(draw.randint(1, longest)))
    return "".join(parts)[:longest]


def draw_file(draw: random.Random, *, lines: int, longest: int) -> bytes:
    """Lines that may hold anything, bytes that are no UTF-8 included; the last one may be cut
    off."""
    made = []
    for _ in range(lines):
        line = draw_line(draw, longest=longest).encode()
        if draw.random() < 0.05:
            place = draw.randint(0, len(line))
            line = line[:place] + draw.choice(NO_TEXT) + line[place:]
        made.append(line + draw.choice((b"\n", b"\n", b"\n", b"\r\n", b"\n\n")))
    content = b"".join(made)
    return content[: len(content) - draw.randint(0, 3)]


def _any_character(draw: random.Random) -> str:
    while True:
        number = draw.choice(
            (
                draw.randint(0x20, 0x2FF),
                draw.randint(0x300, 0xFFFF),
                draw.randint(0x10000, 0x10FFFF),
            )
        )
        if not 0xD800 <= number <= 0xDFFF:
            return chr(number)
