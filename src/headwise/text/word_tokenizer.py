"""Word tokenizer: a text is split at whitespace, and every word is one token.

It is the oldest vocabulary and the easiest to inspect. Words outside of it are unknown, which is
why Sennrich et al. (2016) introduced subwords (`sentencepiece_tokenizer.py`). It is not reversible:
runs of spaces become one, unknown words become "⁇".

    "the  cat sat"  ->  [the, cat, sat]  ->  "the cat sat"

Tested against: decode(encode(x)) == " ".join(x.split()) if all words are known.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headwise.errors import DataError
from headwise.text.tokenizer import (
    NUM_SPECIAL,
    SPECIAL_PIECES,
    UNKNOWN,
    UNKNOWN_TEXT,
    WORD_START,
    escape,
)
from headwise.text.vocabulary import Vocabulary, load_vocabulary, most_frequent
from headwise.text.word_lookup import WordFinder


class WordTokenizer:
    reversible = False

    def __init__(self, vocabulary: Vocabulary, *, lowercase: bool) -> None:
        self.vocabulary, self.lowercase = vocabulary, lowercase

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        words = text.lower().split() if self.lowercase else text.split()
        return [self.vocabulary.id_of(word) for word in words]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        find = self.vocabulary.ids.get
        lines = (text.lower().split() if self.lowercase else text.split() for text in texts)
        return [[find(word, UNKNOWN) for word in line] for line in lines]

    def encode_flat(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of all lines in one array, and the number of ids of each line."""
        return self._finder.find(texts)

    @cached_property
    def _finder(self) -> WordFinder:
        return WordFinder(self.vocabulary.ids, lowercase=self.lowercase)

    def decode(self, ids: Sequence[int]) -> str:
        kept = (number for number in ids if number >= UNKNOWN)
        return " ".join(
            UNKNOWN_TEXT if number == UNKNOWN else self.vocabulary.entry_of(number)
            for number in kept
        )

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [
            self.vocabulary.entry_of(number)
            if number < NUM_SPECIAL
            else WORD_START + self.vocabulary.entry_of(number)
            for number in ids
        ]

    def surfaces(self) -> list[bytes]:
        words = (
            UNKNOWN_TEXT,
            *(self.vocabulary.entry_of(number) for number in range(NUM_SPECIAL, self.size)),
        )
        return [
            b"",
            b"",
            b"",
            *(f" {escape(word)}".encode("utf-8", "surrogatepass") for word in words),
        ]

    def save(self, directory: Path) -> None:
        self.vocabulary.save(directory, {"kind": "words", "lowercase": self.lowercase})


def learn_words(
    lines: Iterable[str], *, size: int, min_count: int, lowercase: bool
) -> WordTokenizer:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(line.lower().split() if lowercase else line.split())
    if not counts:
        raise DataError(
            "the text to learn the words from is empty; give a corpus with at least one line",
            "用于学习词表的文本为空；请提供至少一行的语料",
        )
    for (
        name
    ) in SPECIAL_PIECES:  # a text that marks its unknown words (PTB's <unk>) means our unknown word
        counts.pop(name, None)
    return WordTokenizer(most_frequent(counts, size=size, min_count=min_count), lowercase=lowercase)


def load_words(directory: Path) -> WordTokenizer:
    vocabulary, settings = load_vocabulary(directory, kind="words")
    return WordTokenizer(vocabulary, lowercase=bool(settings.get("lowercase")))
