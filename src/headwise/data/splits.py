"""Splits a corpus by its sentences, so that training, validation and test never share one.

The letters and digits of one side of a pair are hashed, and the hash decides the split. So a
sentence that occurs twice, in two corpora, or with other punctuation falls into the same split
everywhere, and no list of sentences has to be stored.

    h = BLAKE2b(letters and digits, lower case) mod `of`
    h < test: test;   else h < test + valid: validation;   else: training
"""

import hashlib
from collections.abc import Iterable
from typing import Literal

import pydantic

from headwise.errors import SettingsError
from headwise.settings import Settings
from headwise.text.cleaning import letters_and_digits

Part = Literal["train", "valid", "test"]


class SplitSettings(Settings):
    """The part of a corpus to take, by a stable hash of the sentence of one side."""

    by: str
    """The language whose sentence is hashed: source or target."""
    part: Part
    valid: int = pydantic.Field(default=1, ge=0)
    test: int = pydantic.Field(default=1, ge=0)
    of: int = pydantic.Field(default=100, ge=1)
    """Of this many sentences `valid` go to validation, `test` to test, and the rest to training."""

    @pydantic.model_validator(mode="after")
    def _leave_training(self) -> "SplitSettings":
        if self.valid + self.test >= self.of:
            raise SettingsError(
                f"valid + test = {self.valid + self.test} of {self.of} leaves nothing to train "
                "on; make them smaller",
                f"valid + test = {self.valid + self.test}，而 of = {self.of}，没有留下训练数据；"
                "请减小",
            )
        return self


def place_of(sentence: str, of: int) -> int:
    key = letters_and_digits(sentence).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little") % of


def part_of(sentence: str, split: SplitSettings) -> Part:
    place = place_of(sentence, split.of)
    if place < split.test:
        return "test"
    return "valid" if place < split.test + split.valid else "train"


def check_splits(splits: Iterable[SplitSettings | None], *, language: str) -> None:
    """Text of one language can only be split by that language."""
    for split in splits:
        if split is not None and split.by != language:
            raise SettingsError(
                f"split.by is {split.by!r}; the text is {language!r}: write split.by={language}",
                f"split.by 为 {split.by!r}；文本语言是 {language!r}：请写 split.by={language}",
            )
