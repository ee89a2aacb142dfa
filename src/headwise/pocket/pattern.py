"""A pattern is a way to say something: how its slots are drawn and how each language says it.
Patterns of one theme live in one module; the registry here collects them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from headwise.pocket.draw import Draw
from headwise.pocket.template import Part, Slot, parse

Slots = Mapping[str, Slot]


@dataclass(frozen=True)
class Wording:
    """One template per language, parsed."""

    en: tuple[Part, ...]
    zh: tuple[Part, ...]
    de: tuple[Part, ...]


@dataclass(frozen=True)
class Pattern:
    """Named, weighted, with a function that draws the slots and the wordings to choose from."""

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


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns of the corpus."""
    from headwise.pocket import (
        patterns_ambiguous,
        patterns_clauses,
        patterns_describing,
        patterns_doing,
        patterns_numbers,
        patterns_people_pronouns,
        patterns_places,
        patterns_pronouns,
        patterns_questions,
    )

    modules = (
        patterns_doing,
        patterns_questions,
        patterns_places,
        patterns_describing,
        patterns_numbers,
        patterns_clauses,
        patterns_pronouns,
        patterns_people_pronouns,
        patterns_ambiguous,
    )
    return tuple(one for module in modules for one in module.PATTERNS)


@cache
def pattern_wheel() -> tuple[Pattern, ...]:
    """Every pattern as often as its weight, so that one uniform choice respects the weights."""
    return tuple(one for one in patterns() for _ in range(one.weight))
