"""Generates the sentences of the pocket corpus: sentence i of a split is a pure function of (split,
i, seed).

A sentence is drawn again until it belongs to the split. Train, valid and test divide the sentences
by a hash of the English text; unseen has the combinations (verb and object, adjective and noun, two
antecedents …) that no other split contains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple
from zlib import crc32

from headwise.pocket.lexicon import adjectives, nouns, verb
from headwise.pocket.pattern import Pattern, Slots, Wording
from headwise.pocket.random_draw import Draw
from headwise.pocket.second_wording import draws_second, put_time_first
from headwise.pocket.sentence import (
    LANGUAGES,
    LanguageError,
    Sentence,
    capitalise,
    detokenise,
)
from headwise.pocket.sentence_patterns.table import pattern_wheel
from headwise.pocket.template import Token, render

SPLITS = ("train", "valid", "test", "unseen")
HELD_OUT_PERCENT = 7
BUCKETS = 16
"""Of 16 buckets of English texts one is valid, one is test, the others are train."""


class SplitError(ValueError):
    """A split name that does not exist."""

    def __init__(self, split: str) -> None:
        super().__init__(
            f"got split {split!r}; the splits are {', '.join(SPLITS)}; pass one of these names"
        )


@cache
def few_nouns() -> frozenset[str]:
    """The adjectives that fit only a few nouns."""
    return frozenset(
        one.concept
        for one in adjectives()
        if sum(1 for noun in nouns() if noun.classes & one.fits) < 7
    )


@cache
def held_out(pair: tuple[str, str]) -> bool:
    """Whether a combination is kept out of train, valid and test.

    Words with few partners keep all of them in training.
    """
    kind, _, concept = pair[0].partition(":")
    if kind == "object" and len(verb(concept).objects) < 5:
        return False
    if kind == "adjective" and concept in few_nouns():
        return False
    return crc32("+".join(pair).encode()) % 100 < HELD_OUT_PERCENT


def split_of(text: str) -> str:
    """The split that an English text without held-out combinations belongs to."""
    bucket = crc32(text.encode()) * 2654435761 % 2**32 >> 28
    return "valid" if bucket == 0 else "test" if bucket == 1 else "train"


class _Drawn(NamedTuple):
    """A meaning that belongs to a split, so far worded in English only."""

    pattern: Pattern
    pairs: list[tuple[str, str]]
    wording: Wording
    slots: Slots
    english: tuple[Token, ...]

    def words(self, language: str) -> tuple[Token, ...]:
        match language:
            case "en":
                return self.english
            case "zh":
                return tuple(render(self.wording.zh, "zh", self.slots))
            case "de":
                return capitalise(render(self.wording.de, "de", self.slots))
        raise LanguageError(language)

    def text(self, language: str) -> str:
        return detokenise([token.word for token in self.words(language)], language)

    def second_text(self, language: str) -> str | None:
        """The other right wording, if there is one (second_wording.py)."""
        if language not in LANGUAGES:
            raise LanguageError(language)
        template = put_time_first(self.wording, language)
        if template is None:
            return None
        tokens = capitalise(render(template, language, self.slots))
        return detokenise([token.word for token in tokens], language)


def attempt(split: str, key: str) -> _Drawn | None:
    """Draw one sentence; None if it belongs to another split."""
    draw = Draw(key)
    pattern = draw.choose(pattern_wheel())
    wording, slots = pattern.choose(draw)
    if any(held_out(pair) for pair in draw.pairs) != (split == "unseen"):
        return None
    english = capitalise(render(wording.en, "en", slots))
    if split != "unseen" and split_of(" ".join(token.word for token in english)) != split:
        return None
    return _Drawn(pattern, draw.pairs, wording, slots, english)


def _draw_until(split: str, index: int, seed: int) -> _Drawn:
    if split not in SPLITS:
        raise SplitError(split)
    tries = 0
    while True:
        found = attempt(split, f"{seed}/{split}/{index}/{tries}")
        if found is not None:
            return found
        tries += 1


def sentence(split: str, index: int, *, seed: int = 0) -> Sentence:
    """Sentence ``index`` of a split; the same arguments give the same sentence everywhere."""
    found = _draw_until(split, index, seed)
    english, chinese, german = (found.words(language) for language in ("en", "zh", "de"))
    return Sentence(found.pattern.name, tuple(found.pairs), english, chinese, german)


def texts(
    split: str, count: int, languages: Sequence[str], *, seed: int = 0, second_wording: float = 0.0
) -> Iterator[tuple[str, ...]]:
    """Sentences 0, 1, … as text in these languages only.

    `second_wording` is the chance that the last language, the target, has its second right wording,
    where there is one.
    """
    for index in range(count):
        found = _draw_until(split, index, seed)
        said = [found.text(one) for one in languages]
        if second_wording and draws_second(f"{seed}/{split}/{index}", second_wording):
            said[-1] = found.second_text(languages[-1]) or said[-1]
        yield tuple(said)


def right_texts(split: str, index: int, language: str, *, seed: int = 0) -> tuple[str, ...]:
    """Every right wording of a sentence: one or two, the usual one first."""
    found = _draw_until(split, index, seed)
    second = found.second_text(language)
    return (found.text(language),) if second is None else (found.text(language), second)


def sentences(split: str, count: int, *, seed: int = 0, start: int = 0) -> Iterator[Sentence]:
    """Sentences start, start + 1, ... of a split."""
    for index in range(start, start + count):
        yield sentence(split, index, seed=seed)
