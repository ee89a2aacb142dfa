"""Wraps lines to the width of a terminal: between words, in Chinese between characters.

A line may be broken at a space, after `|` (in signatures of sacreBLEU), and before or after a
Chinese character, except where punctuation would then begin or end a line. A command is meant to be
copied and is never broken: text between backticks, and text after `: headwise` to the end of its
line. A word that is longer than a line is left to the terminal, which keeps it in one piece when it
is copied. Output for programs is not wrapped.
"""

import re
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from typing import TextIO

NARROWEST = 20
CLOSING = "，。；：！？、）》」』”’…,.;:!?)%"
"""Characters that may not begin a line."""
OPENING = "（《「『“‘("
"""Characters that may not end a line."""
_WIDE = r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]"
_PART = re.compile(
    r"`[^`\n]*`|(?<=[:：] )headwise .*|(?<=：)headwise .*"
    rf"|{_WIDE}|[^\s|`]*?(?:\||(?={_WIDE}|[\s`]|$))|`",
    re.DOTALL,
)


def text_width(text: str) -> int:
    """The columns of a text on a terminal: a Chinese character takes two, a combining mark none."""
    return sum(
        0 if unicodedata.combining(one) else 1 + (unicodedata.east_asian_width(one) in "WF")
        for one in text
    )


def pad(text: str, width: int) -> str:
    """The text followed by spaces, `width` columns in all."""
    return text + " " * (width - text_width(text))


def split_parts(text: str) -> list[str]:
    """The parts of a text that must not be broken, in order, each with the spaces before it."""
    parts: list[str] = []
    place = 0
    while place < len(text):
        spaces = len(text[place:]) - len(text[place:].lstrip(" "))
        found = _PART.match(text, place + spaces)
        end = (
            found.end()
            if found is not None and found.end() > place + spaces
            else place + spaces + 1
        )
        part = text[place:end]
        place = end
        joins = bool(parts) and not spaces and (part[0] in CLOSING or parts[-1][-1] in OPENING)
        if joins:
            parts[-1] += part
        elif part.strip():
            parts.append(part)
    return parts


def wrap(text: str, width: int, *, indent: str = "") -> list[str]:
    """One line as lines of at most `width` columns; lines after the first begin with `indent`."""
    lines, line = [], ""
    for part in split_parts(text):
        if line.strip() and text_width(line) + text_width(part) > width:
            lines.append(line)
            line = indent + part.lstrip(" ")
        else:
            line += part
    return [*lines, line]


def join_parts(parts: Sequence[str], width: int, separator: str = " · ") -> str:
    """Parts side by side, as many as fit into `width` columns; no part is broken."""
    lines = list(parts[:1])
    for part in parts[1:]:
        joined = lines[-1] + separator + part
        if text_width(joined) > width:
            lines.append(part)
        else:
            lines[-1] = joined
    return "\n".join(lines)


def longest_part(text: str) -> int:
    """The smallest width to which a text can be wrapped."""
    return max(
        (text_width(part.strip()) for line in text.splitlines() for part in split_parts(line)),
        default=0,
    )


def terminal_width() -> int:
    return max(NARROWEST, shutil.get_terminal_size((80, 24)).columns)


def wrap_text(text: str, width: int, *, hanging: int = 0) -> str:
    """Wrap each line of a text. Indented lines stay indented, and their continuations by `hanging`
    columns more.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip(" "))] + " " * hanging
        lines += wrap(line, width, indent=indent)
    return "\n".join(lines)


def write_line(text: str, stream: TextIO | None = None, *, hanging: int = 0) -> None:
    """Write sentences for people, on standard output by default."""
    stream = sys.stdout if stream is None else stream
    stream.write(
        (wrap_text(text, terminal_width(), hanging=hanging) if stream.isatty() else text) + "\n"
    )
