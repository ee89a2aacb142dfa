"""Reads text of one language, as the `data:` section of a language model's recipe names it.

    my/text.txt                  one sentence (or paragraph) a line; plain, .gz or .xz
    my/pairs.tsv                 {path: my/pairs.tsv, column: 1}
    known:ptb/train              a public corpus; of a parallel one the side of `data.language`
    pocket:train                 sentences of the built-in grammar

Lines are not filtered: only empty ones are left out (unless kept), and a line that is too long is
an error with its number. Tested against: the lists written to the files; every defect named here.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from headwise.data.corpus_names import LanguageCode, as_list, expand
from headwise.data.known.corpora import KnownText, find_known_text
from headwise.data.labels.labelled_files import read_comma_table, read_conllu, read_leading
from headwise.data.pairs.parallel_files import empty_file
from headwise.data.splits import Part, SplitSettings, check_splits, part_of
from headwise.data.text_lines import MAX_LINE_BYTES, find_text_file, read_lines
from headwise.errors import DataError
from headwise.settings import Settings


class _Text(Settings):
    skip: int = Field(default=0, ge=0)
    """Leave out this many lines at the start (after `split`)."""
    limit: int | None = Field(default=None, ge=1)
    """Take at most this many lines, after the skipped ones."""


class _DividedText(_Text):
    split: SplitSettings | None = None
    """Take only a part, chosen by a hash of the line."""


class TextFile(_DividedText):
    """One file, one sentence a line."""

    kind: Literal["text"] = "text"
    path: Path


class TextColumn(_DividedText):
    """One column of a tab-separated file."""

    kind: Literal["tsv"] = "tsv"
    path: Path
    column: int = Field(default=0, ge=0, le=1000)
    header: bool = False
    """The first line names the columns."""


class KnownTextCorpus(_DividedText):
    """A part of a known public corpus, such as ptb/train."""

    kind: Literal["known"] = "known"
    name: str
    spaced: bool | None = None
    """For text with tagged words (people-daily-199801): put spaces between the words; null: if the
    tokenizer splits at spaces."""


class PocketText(_Text):
    """Sentences of the grammar that comes with Headwise."""

    kind: Literal["pocket"] = "pocket"
    split: Literal["train", "valid", "test", "unseen"] = "train"
    count: int | None = Field(default=None, ge=1, le=10_000_000)
    seed: int = 0


def _kind_of_path(path: str, options: Mapping[str, Any]) -> str:
    return "tsv" if {"column", "header"} & options.keys() else "text"


Text = Annotated[
    Annotated[TextFile | TextColumn | KnownTextCorpus | PocketText, Field(discriminator="kind")],
    BeforeValidator(partial(expand, kind_of_path=_kind_of_path)),
]
Texts = Annotated[tuple[Text, ...], BeforeValidator(as_list)]


class TextDataSettings(Settings):
    """The language and its texts."""

    language: LanguageCode
    """Language code: which side of a parallel corpus is read."""
    train: Texts = Field(min_length=1)
    valid: Texts = ()
    test: Texts = ()
    keep_empty: bool = False
    """Keep an empty line as a sentence without words (WikiText counts its end)."""

    @model_validator(mode="after")
    def _check_split(self) -> "TextDataSettings":
        named = (*self.train, *self.valid, *self.test)
        check_splits(
            [text.split for text in named if isinstance(text, _DividedText)], language=self.language
        )
        return self

    def texts(self, part: Part) -> tuple[Text, ...]:
        named: tuple[Text, ...] = getattr(self, part)
        return named


class MaskingSettings(Settings):
    """Which tokens are masked (masking.py)."""

    rate: float = Field(default=0.15, gt=0, lt=1)
    """Share of the tokens that are predicted."""
    hidden: float = Field(default=0.8, ge=0, le=1)
    """Of these, the share that is replaced by the mask."""
    random: float = Field(default=0.1, ge=0, le=1)
    """Of these, the share that is replaced by a random word; the rest stays as it is."""
    whole_words: bool = False
    """Mask all pieces of a word or none."""


def read_texts(data: TextDataSettings, part: Part, *, in_words: bool = False) -> Iterator[str]:
    """The lines of a part, stripped of spaces at both ends.

    `in_words`: they will be split at spaces.
    """
    return read_each(data.texts(part), data.language, keep_empty=data.keep_empty, in_words=in_words)


def read_each(
    texts: Iterable[Text], language: str, *, keep_empty: bool = False, in_words: bool = False
) -> Iterator[str]:
    """The lines of several texts, one text after another."""
    for text in texts:
        lines = (line.strip() for line in _read(text, language, in_words=in_words))
        kept: Iterator[str] = lines if keep_empty else filter(None, lines)
        if isinstance(text, _DividedText) and (split := text.split) is not None:
            kept = _take_part(kept, split)
        yield from islice(kept, text.skip, None if text.limit is None else text.skip + text.limit)


def _take_part(lines: Iterator[str], split: SplitSettings) -> Iterator[str]:
    return (line for line in lines if part_of(line, split) == split.part)


def _read(text: Text, language: str, *, in_words: bool) -> Iterator[str]:
    match text:
        case TextFile():
            return read_whole_lines(find_text_file(text.path))
        case TextColumn():
            return islice(
                _read_column(find_text_file(text.path), text.column, {}), int(text.header), None
            )
        case KnownTextCorpus():
            known = find_known_text(text.name, language)
            if known.column is not None:
                return _read_column(known.path, known.column, known.keep)
            return _read_known(known, spaced=in_words if text.spaced is None else text.spaced)
        case PocketText():
            return _speak(text, language)


def read_whole_lines(path: Path) -> Iterator[str]:
    """Every line of a file; a line that is too long, or an empty file, is an error."""
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        if line is None:
            raise DataError(
                f"is longer than {MAX_LINE_BYTES:,} bytes; put one sentence on a line",
                f"超过 {MAX_LINE_BYTES:,} 字节；请每行只放一句",
                file=path,
                line=number,
            )
        yield line
    if number == 0:
        raise empty_file(path)


def _read_column(path: Path, column: int, keep: Mapping[int, tuple[str, ...]]) -> Iterator[str]:
    for number, line in enumerate(read_whole_lines(path), start=1):
        cells = line.split("\t")
        if len(cells) <= column:
            raise DataError(
                f"the line has {len(cells)} column(s) separated by tabs, column {column} (from 0) "
                "is asked for; correct the line or `column`",
                f"该行只有 {len(cells)} 个以制表符分隔的列，而要求的是第 {column} 列（从 0 "
                "数起）；请改正该行或 `column`",
                file=path,
                line=number,
            )
        if all(len(cells) > other and cells[other] in values for other, values in keep.items()):
            yield cells[column]


def _untagged(line: str, *, spaced: bool) -> str:
    """`[中央/n 电台/n]nt` without tags and brackets."""
    words = [word.removeprefix("[").rpartition("/")[0] for word in line.split()]
    return (" " if spaced else "").join(words)


def _read_known(known: KnownText, *, spaced: bool) -> Iterator[str]:
    """The text alone, without labels or tags."""
    match known.form:
        case "tagged":
            return (_untagged(line, spaced=spaced) for line in read_whole_lines(known.path))
        case "classes":
            return _read_column(known.path, 0, known.keep)
        case "senses":
            return _read_column(known.path, 3, known.keep)
        case "reviews":
            found = read_comma_table(
                known.path, text_column=1, label_column=0, header=True, skip_empty=True
            )
        case "questions":
            found = read_leading(known.path, coarse=False)
        case "conllu":
            found = read_conllu(known.path, tags="upos")
        case _:
            return read_whole_lines(known.path)
    return (" ".join(one.words).replace("\n", " ") for one in found)


def _speak(text: PocketText, language: str) -> Iterator[str]:
    from headwise.pocket import sentences  # imported here, because few runs need the grammar

    count = text.count or (100_000 if text.split == "train" else 1_000)
    return (sentence.text(language) for sentence in sentences(text.split, count, seed=text.seed))
