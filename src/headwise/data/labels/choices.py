"""The `data:` section of recipes for classification and tagging, and how labelled text is opened.

    my/train.tsv                 text and label               classification
    my/train.conllu              words and tags               tagging
    known:sst2/train             a public corpus, read in its own format

Tested against: each format through a recipe; labels of the wrong shape are an error.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from headwise.data.corpus_names import LanguageCode, as_list, expand
from headwise.data.known.corpora import find_known_labelled
from headwise.data.labels import labelled_files as files
from headwise.data.labels.labelled_files import Labelled
from headwise.data.splits import Part, SplitSettings, check_splits, part_of
from headwise.data.text_lines import find_text_file
from headwise.errors import SettingsError, UsageError
from headwise.settings import Settings

Shape = Literal["one", "each"]
"""One label a text, or one for each word."""
Column = Annotated[int, pydantic.Field(ge=0, le=1000)]


class _LabelSource(Settings):
    limit: int | None = pydantic.Field(default=None, ge=1)
    """Take at most this many texts or sentences from the start (after `split`)."""
    split: SplitSettings | None = None
    """Take only a part, chosen by a hash of the text."""


class LabelTable(_LabelSource):
    """Text and label in two columns of a tab-separated file."""

    kind: Literal["tsv"] = "tsv"
    path: Path
    text_column: Column = 0
    label_column: Column = 1
    header: bool = False
    """The first line names the columns."""


class LabelCommaTable(_LabelSource):
    """Text and label in two columns of comma-separated values."""

    kind: Literal["csv"] = "csv"
    path: Path
    text_column: Column = 0
    label_column: Column = 1
    header: bool = True
    """The first line names the columns."""


class LeadingLabels(_LabelSource):
    """The first word of each line is its label."""

    kind: Literal["leading"] = "leading"
    path: Path
    coarse: bool = False
    """Of a label such as DESC:manner keep only the part before the colon."""


class Conllu(_LabelSource):
    """Universal Dependencies."""

    kind: Literal["conllu"] = "conllu"
    path: Path
    tags: Literal["upos", "xpos"] = "upos"
    """The universal tags (UPOS) or the tags of the language (XPOS)."""


class WordColumns(_LabelSource):
    """A word, a tab, its tag; an empty line between sentences."""

    kind: Literal["columns"] = "columns"
    path: Path


class SlashedWords(_LabelSource):
    """word/TAG word/TAG … on each line."""

    kind: Literal["slashed"] = "slashed"
    path: Path


class AlignedTags(_LabelSource):
    """Words in one file, their tags in another."""

    kind: Literal["aligned"] = "aligned"
    path: Path
    tags_path: Path
    """The file of tags."""


class KnownLabels(_LabelSource):
    """A part of a known public corpus, such as sst2/train."""

    kind: Literal["known"] = "known"
    name: str
    coarse: bool = False
    """Of a label such as DESC:manner keep only the part before the colon."""


_SUFFIXES = {".tsv": "tsv", ".csv": "csv", ".conllu": "conllu"}


def _kind_of_path(path: str, options: Mapping[str, Any]) -> str:
    suffix = Path(path.removesuffix(".gz").removesuffix(".xz")).suffix
    if suffix not in _SUFFIXES:
        raise SettingsError(
            f"the name {path!r} does not show the format of the file; end it in .tsv, .csv or "
            f".conllu, or write {{path: {path}, kind: …}}",
            f"从 {path!r} 看不出格式；请以 .tsv、.csv 或 .conllu 结尾，或写 {{path: {path}, kind: "
            "…}",
        )
    return _SUFFIXES[suffix]


Labels = Annotated[
    Annotated[
        LabelTable
        | LabelCommaTable
        | LeadingLabels
        | Conllu
        | WordColumns
        | SlashedWords
        | AlignedTags
        | KnownLabels,
        pydantic.Field(discriminator="kind"),
    ],
    pydantic.BeforeValidator(partial(expand, kind_of_path=_kind_of_path)),
]
LabelCorpora = Annotated[tuple[Labels, ...], pydantic.BeforeValidator(as_list)]


class LabelDataSettings(Settings):
    """The language and its labelled corpora."""

    language: LanguageCode
    """Language code."""
    train: LabelCorpora = pydantic.Field(min_length=1)
    valid: LabelCorpora = ()
    test: LabelCorpora = ()
    row_tokens: int = pydantic.Field(default=128, ge=4, le=65536)
    """Tokens of a row, which holds several short texts; a longer text is cut, a longer tagged
    sentence continues in a new row."""

    @pydantic.model_validator(mode="after")
    def _check_split(self) -> "LabelDataSettings":
        named = (*self.train, *self.valid, *self.test)
        check_splits([corpus.split for corpus in named], language=self.language)
        return self

    def corpora(self, part: Part) -> tuple[Labels, ...]:
        named: tuple[Labels, ...] = getattr(self, part)
        return named


def parse_labels(value: Any) -> Labels:
    """A corpus from its name in a recipe or on the command line."""
    adapter: pydantic.TypeAdapter[Labels] = pydantic.TypeAdapter(Labels)
    return adapter.validate_python(value)


def read_labelled(corpus: Labels, *, language: str, shape: Shape) -> Iterator[Labelled]:
    """The texts or sentences of a corpus; labels of the wrong shape are an error."""
    found, own = _read(corpus, language)
    if own != shape:
        name = getattr(corpus, "name", None) or getattr(corpus, "path", "")
        wants, gives = (
            ("one label a text", "a tag for each word")
            if shape == "one"
            else ("a tag for each word", "one label a text")
        )
        zh = ("每条文本一个标签", "每个词一个标注")
        raise UsageError(
            f"{name} ({corpus.kind}) has {gives}, {wants} is needed; set "
            f"task={'tagging' if own == 'each' else 'classification'}, or give another corpus",
            f"{name}（{corpus.kind}）为{zh[own == 'each']}，此处需要{zh[shape == 'each']}；请设 "
            f"task={'tagging' if own == 'each' else 'classification'}，或换一个语料",
        )
    if (split := corpus.split) is not None:
        found = (one for one in found if part_of(" ".join(one.words), split) == split.part)
    return islice(found, corpus.limit)


def _read(corpus: Labels, language: str) -> tuple[Iterator[Labelled], Shape]:
    match corpus:
        case LabelTable():
            columns = {"text_column": corpus.text_column, "label_column": corpus.label_column}
            return files.read_table(
                find_text_file(corpus.path), header=corpus.header, **columns
            ), "one"
        case LabelCommaTable():
            text, label = corpus.text_column, corpus.label_column
            found = find_text_file(corpus.path)
            return files.read_comma_table(
                found, text_column=text, label_column=label, header=corpus.header
            ), "one"
        case LeadingLabels():
            return files.read_leading(find_text_file(corpus.path), coarse=corpus.coarse), "one"
        case Conllu():
            return files.read_conllu(find_text_file(corpus.path), tags=corpus.tags), "each"
        case WordColumns():
            return files.read_columns(find_text_file(corpus.path)), "each"
        case SlashedWords():
            return files.read_slashed(find_text_file(corpus.path)), "each"
        case AlignedTags():
            return files.read_aligned(
                find_text_file(corpus.path), find_text_file(corpus.tags_path)
            ), "each"
        case KnownLabels():
            return _read_known(corpus, language)


def _read_known(corpus: KnownLabels, language: str) -> tuple[Iterator[Labelled], Shape]:
    known = find_known_labelled(corpus.name, language)
    match known.form:
        case "classes":
            return files.read_table(known.path, text_column=0, label_column=1), "one"
        case "reviews":
            path = known.path
            return files.read_comma_table(
                path, text_column=1, label_column=0, header=True, skip_empty=True
            ), "one"
        case "questions":
            return files.read_leading(known.path, coarse=corpus.coarse), "one"
        case "conllu":
            return files.read_conllu(known.path, tags="upos"), "each"
        case _:
            return files.read_slashed(known.path), "each"
