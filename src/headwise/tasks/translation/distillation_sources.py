"""The sentences that a teacher translates, in an order that never changes, cut into shards.

They come from the training corpora of a recipe, with its filters on text, or from files. The whole
of them has a SHA-256, so that a resumed distillation notices another corpus. They are read as a
stream and never held in memory.

Tested against: plain lists; files and recipes give the same sentences.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from headwise.data.pairs.choices import DataSettings, corpus_name, read_corpus
from headwise.data.pairs.filtering import FilterSettings, check_text
from headwise.data.pairs.parallel_files import Pair, read_parallel
from headwise.data.text_lines import find_text_file, read_lines
from headwise.errors import DataError, UsageError

Counted = Callable[[int], None]


class SourceLine(NamedTuple):
    """A sentence to translate and the translation that the corpus has for it, if any."""

    text: str
    reference: str | None


@dataclass(frozen=True)
class Sources:
    """Where sentences come from, and how many of them there are; made by the first process."""

    sha256: str
    sentences: int
    """Those that can be translated."""
    unusable: int
    """Empty, too long, or with control characters."""


@dataclass(frozen=True)
class Corpora:
    """The training corpora of a recipe, or files of sentences."""

    data: DataSettings
    files: tuple[Path, ...] = ()
    references: tuple[Path, ...] = ()

    @property
    def has_references(self) -> bool:
        return not self.files or bool(self.references)

    def describe(self) -> list[Any]:
        """The corpora as a recipe or a command names them."""
        if self.files:
            return [str(file) for file in self.files]
        return [corpus.model_dump(mode="json", exclude_none=True) for corpus in self.data.train]

    def names(self) -> list[str]:
        if self.files:
            return [str(file) for file in self.files]
        return [corpus_name(corpus) for corpus in self.data.train]

    def read(self) -> Iterator[SourceLine | None]:
        """Every sentence in order; None for one that cannot be translated."""
        for pair in self._pairs():
            reason, clean = check_text(pair, self._filter())
            if reason is not None:
                yield None
            else:
                yield SourceLine(clean.source, clean.target if self.has_references else None)

    def shards(self, size: int) -> Iterator[list[SourceLine]]:
        """The usable sentences, `size` at a time."""
        usable = (line for line in self.read() if line is not None)
        while block := list(islice(usable, size)):
            yield block

    def count(self, told: Counted | None = None) -> Sources:
        """One pass over everything: the checksum and the number of sentences."""
        if not self.files and not self.data.train:
            raise UsageError(
                "the teacher was imported, and its training data are not known; name what it "
                "shall translate: --source FILE, or data.train=my/train",
                "教师是导入的模型，其训练数据未知；请指明要翻译的内容：--source FILE，或 "
                "data.train=my/train",
            )
        total, usable, checksum = 0, 0, hashlib.sha256()
        for total, line in enumerate(self.read(), start=1):
            if line is not None:
                usable += 1
                reference = "" if line.reference is None else line.reference
                checksum.update(f"{line.text}\n{reference}\n".encode())
            if told is not None and total % 1000 == 0:
                told(total)
        if not usable:
            raise DataError(
                f"{', '.join(self.names())}: none of {total:,} lines can be translated (each is "
                "empty, too long or has control characters); give other sentences",
                f"{'、'.join(self.names())}：{total:,} 行中没有一行可以翻译"
                "（为空、过长或含控制字符）；请换用别的句子",
            )
        return Sources(checksum.hexdigest(), usable, total - usable)

    def _filter(self) -> FilterSettings:
        """A source that equals its reference can be translated all the same."""
        return self.data.filter.model_copy(update={"drop_identical": False})

    def _pairs(self) -> Iterator[Pair]:
        if not self.files:
            for corpus in self.data.train:
                yield from read_corpus(corpus, source=self.data.source, target=self.data.target)
            return
        for number, file in enumerate(self.files):
            path = find_text_file(file)
            if self.references:
                yield from read_parallel(path, find_text_file(self.references[number]))
            else:
                yield from _read_alone(path)


def _read_alone(path: Path) -> Iterator[Pair]:
    """Lines without a translation; the filters see each beside itself."""
    for number, line in enumerate(read_lines(path), start=1):
        if line is None:
            yield Pair("", "", str(path), number, "long_line")
        else:
            yield Pair(line, line, str(path), number)


def num_shards(sentences: int, size: int) -> int:
    return -(-sentences // size)


def shards_of(
    corpora: Corpora, size: int, chosen: Sequence[int]
) -> Iterator[tuple[int, list[SourceLine]]]:
    """The chosen shards, whose numbers rise, with their numbers."""
    wanted = iter(chosen)
    number = next(wanted, None)
    for place, block in enumerate(corpora.shards(size)):
        if number is None:
            return
        if place == number:
            yield place, block
            number = next(wanted, None)
