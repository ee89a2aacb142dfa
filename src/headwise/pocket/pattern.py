"""One pattern of the pocket corpus: a kind of sentence with slots that are filled at random.

A pattern has a function that draws words for its slots, and a wording in each language.

The patterns of one theme are a module of `sentence_patterns/`; `sentence_patterns/table.py` lists
all of them. The wordings are text files in `wordings/`, which a native speaker can review.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources

from headwise.pocket.random_draw import Draw
from headwise.pocket.template import TemplatePart, TemplateSlot, parse

Slots = Mapping[str, TemplateSlot]


@dataclass(frozen=True)
class Wording:
    """One template per language, parsed."""

    en: tuple[TemplatePart, ...]
    zh: tuple[TemplatePart, ...]
    de: tuple[TemplatePart, ...]


@dataclass(frozen=True)
class Pattern:
    """A name, a weight, a function that draws the slots, and the wordings to choose from."""

    name: str
    weight: int
    draw: Callable[[Draw], Slots]
    wordings: tuple[Wording, ...]

    def choose(self, draw: Draw) -> tuple[Wording, Slots]:
        """Draw one wording and its slots."""
        wording = self.wordings[0] if len(self.wordings) == 1 else draw.choose(self.wordings)
        return wording, self.draw(draw)


def wording(en: str, zh: str, de: str) -> Wording:
    """Parse the three lines of a wording."""
    return Wording(parse(en), parse(zh), parse(de))


def worded(file: str, draws: Mapping[str, Callable[[Draw], Slots]]) -> tuple[Pattern, ...]:
    """Join the wordings of one file with the functions that draw their slots."""
    text = (
        resources.files("headwise.pocket")
        .joinpath("wordings")
        .joinpath(file)
        .read_text(encoding="utf-8")
    )
    weights: dict[str, int] = {}
    lines: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("["):
            name, _, weight = line[1:].partition("] ")
            weights[name], lines[name] = int(weight), []
        elif line and not line.startswith("#"):
            lines[name].append(line[3:])
    if lines.keys() != draws.keys():
        raise ValueError(
            f"{file} words {sorted(lines)}; a module draws exactly the patterns its file words; "
            f"make them agree on {sorted(lines.keys() ^ draws.keys())}"
        )
    return tuple(
        Pattern(name, weights[name], draw, tuple(wording(*three) for three in batched(lines[name])))
        for name, draw in draws.items()
    )


def batched(lines: list[str]) -> list[tuple[str, str, str]]:
    """Lines in threes: English, Chinese, German."""
    return [(lines[at], lines[at + 1], lines[at + 2]) for at in range(0, len(lines), 3)]
