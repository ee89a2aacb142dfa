"""Judges by its words whether a text resembles the training text of a translator.

A model is saved with the word counts of a sample of its training pairs, for both sides. A text does
not resemble the source side in two cases:

    target_language   Σ log p_target(w) - Σ log p_source(w) > log 100, and most of its words
                      occurred on the target side
    unknown_words     fewer than half of its words occurred on the source side, and at least
                      `MIN_UNKNOWN` did not ("OK" is missing in many small training texts)

with p(w) = (count(w) + 1/2) / (words + vocabulary/2), a naive Bayes classifier. A word is a run of
letters in lower case; in scripts without spaces it is one character (`word_boundaries.py`). Digits
and punctuation do not count. 20,000 sentences of a language contain most words of a new sentence in
that language, and few words of a sentence in another one (docs/experiments/translation.md).

Tested against: hand-counted sentences, English and German sentences of the pocket corpus, damage.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from headwise.errors import CheckpointError
from headwise.storage import read_json, write_json
from headwise.text.word_boundaries import UNSPACED

FILE = "known_words.json"
MAX_FILE_BYTES = 8 << 20
MAX_WORDS = 20_000
"""Words kept of each side, the most frequent first."""
ODDS = math.log(100)
MIN_UNKNOWN = 3

Reason = Literal["unknown_words", "target_language", "other_language"]
"""The last is for models without counts: `tasks/translation/input_warning.py`."""

_WORD = re.compile(rf"[{UNSPACED}]|[^\W\d_{UNSPACED}]+")


def find_words(text: str) -> list[str]:
    """Runs of letters, and single letters of scripts without spaces, in lower case."""
    return [word for word in _WORD.findall(text.casefold()) if word.isalpha()]


@dataclass(frozen=True)
class WordCounts:
    """How often words occurred in the text of one language."""

    counts: Mapping[str, int]
    total: int
    """Of all words, also those without an entry."""

    @classmethod
    def of(cls, lines: Iterable[str]) -> Self:
        counts = Counter(word for line in lines for word in find_words(line))
        kept = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:MAX_WORDS]
        return cls(dict(kept), counts.total())

    def log_probability(self, word: str) -> float:
        return math.log(
            (self.counts.get(word, 0) + 0.5) / (self.total + 0.5 * (len(self.counts) + 1))
        )


@dataclass(frozen=True)
class Unlike:
    """Why a text does not resemble the training text."""

    reason: Reason
    num_unknown: int
    num_words: int


@dataclass(frozen=True)
class KnownWords:
    """The words of the training text of a translator, source and target."""

    source: WordCounts
    target: WordCounts

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Count the words of a sample of the training pairs."""
        kept = list(pairs)
        return cls(
            WordCounts.of(source for source, _ in kept), WordCounts.of(target for _, target in kept)
        )

    def without_read_words(self) -> Self:
        """For several directions, where a language is read as well as written: words of the sources
        do not speak for the target language."""
        written = {w: n for w, n in self.target.counts.items() if w not in self.source.counts}
        return replace(self, target=WordCounts(written, self.target.total))

    def judge(self, text: str) -> Unlike | None:
        """None if the text resembles the source side or has no words."""
        words = find_words(text)
        if not words or not self.source.counts:
            return None
        unknown = sum(word not in self.source.counts for word in words)
        odds = sum(
            self.target.log_probability(word) - self.source.log_probability(word) for word in words
        )
        foreign = sum(word in self.target.counts for word in words)
        if odds > ODDS and 2 * foreign > len(words):
            return Unlike("target_language", unknown, len(words))
        is_unlike = unknown >= MIN_UNKNOWN and 2 * unknown > len(words)
        return Unlike("unknown_words", unknown, len(words)) if is_unlike else None

    def save(self, directory: Path) -> None:
        sides = {"source": self.source, "target": self.target}
        write_json(
            directory / FILE,
            {side: {"total": one.total, "counts": one.counts} for side, one in sides.items()},
        )


def load_known_words(directory: Path) -> KnownWords | None:
    """None if there are none, as in older models."""
    if not (directory / FILE).exists():
        return None
    data = read_json(directory / FILE, max_bytes=MAX_FILE_BYTES)
    sides = [
        _read_counts(data.get(side) if isinstance(data, dict) else None)
        for side in ("source", "target")
    ]
    if sides[0] is None or sides[1] is None:
        raise CheckpointError(
            "is damaged (counts of words are missing); use another copy of the model",
            "已损坏（缺少词频）；请使用模型的其他副本",
            file=directory / FILE,
        )
    return KnownWords(sides[0], sides[1])


def _read_counts(data: Any) -> WordCounts | None:
    counts, total = (
        (data.get("counts"), data.get("total")) if isinstance(data, dict) else (None, None)
    )
    if not isinstance(counts, dict) or not isinstance(total, int) or total < 0:
        return None
    return (
        WordCounts(counts, total)
        if all(isinstance(n, int) and n > 0 for n in counts.values())
        else None
    )
