"""The `data:` section of a translation recipe, and how each kind of parallel corpus is opened.

A corpus is written as a string or as a mapping:

    corpus/train                 corpus/train.en and corpus/train.de, each plain, .gz or .xz
    distilled/train              what `headwise distil` wrote; its manifest is checked
    corpus/pairs.tsv.gz          one tab-separated file; {path: …, columns: {en: 0, zh: 1}}
    known:multi30k/raw/train     a public corpus that `headwise data fetch` downloaded
    pocket:train                 sentences of the built-in grammar;
                                 {kind: pocket, split: train, count: 5000}

`weight` is how often the pairs of a corpus are seen in an epoch; `split` takes a share of the
corpus by its sentences (`data/splits.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic

from headwise.data.corpus_names import LanguageCode, as_list, expand
from headwise.data.known.corpora import find_known
from headwise.data.pairs.corpus_tag import Tag
from headwise.data.pairs.directions import (
    Direction,
    check_learnt,
    check_named,
    check_several,
    in_arrows,
    languages_of,
    target_tag,
)
from headwise.data.pairs.filtering import FilterSettings
from headwise.data.pairs.parallel_files import Columns, Pair, find_parallel, read_parallel, read_tsv
from headwise.data.pairs.sealed_corpus import check_sealed_corpus
from headwise.data.splits import Part, SplitSettings, part_of
from headwise.data.text_lines import find_text_file
from headwise.errors import SettingsError
from headwise.settings import Settings
from headwise.text.reversed_tokenizer import TargetOrder

MAX_REMEMBERED = 250_000
"""Pocket sentences kept in memory between readings: about 80 MB."""
_TSV_ENDINGS = (".tsv", ".tsv.gz", ".tsv.xz")


class Keep(Settings):
    """Keep the rows of a TSV file that have one of these values in the column."""

    column: int = pydantic.Field(ge=0, le=1000)
    values: tuple[str, ...]


_OTHER_FIRST = (
    "data.source and data.target are not those of the first of data.directions; leave them out or "
    "change them, because data.directions names the languages",
    "data.source 与 data.target 不是 data.directions 中第一个方向的语言；请去掉或修改它们："
    "语言由 data.directions 指明",
)


class _Corpus(Settings):
    weight: float = pydantic.Field(default=1.0, gt=0.0, le=1000.0)
    """How often each pair is seen in an epoch: 2 twice, 0.5 every other epoch."""
    tag: Tag | None = None
    """A word put before every source of this corpus, such as <bt>; subword tokenizers keep it
    whole."""
    limit: int | None = pydantic.Field(default=None, ge=1)
    """Take at most this many pairs from the start (after `split`)."""
    directions: tuple[Direction, ...] | None = None
    """The directions it is read in; null: all, for measuring also `data.zero_shot`."""


class _SplitCorpus(_Corpus):
    split: SplitSettings | None = None
    """Take only a part, chosen by a hash of the sentence."""


class FilesCorpus(_SplitCorpus):
    """Two line-aligned files: path.SOURCE and path.TARGET."""

    kind: Literal["files"] = "files"
    path: Path


class TsvCorpus(_SplitCorpus):
    """One tab-separated file."""

    kind: Literal["tsv"] = "tsv"
    path: Path
    columns: dict[str, Annotated[int, pydantic.Field(ge=0, le=1000)]] | None = None
    """The column of each language, from 0; by default the source is 0 and the target 1."""
    keep: tuple[Keep, ...] = ()
    header: bool = False
    """The first line names the columns and is not a pair."""


class KnownCorpus(_SplitCorpus):
    """A part of a known public corpus, such as multi30k/raw/train."""

    kind: Literal["known"] = "known"
    name: str
    keep: tuple[Keep, ...] | None = None
    """Keep other rows than the table of known corpora does by default."""


class PocketCorpus(_Corpus):
    """Sentences of the grammar that comes with Headwise: English, German, Chinese."""

    kind: Literal["pocket"] = "pocket"
    split: Literal["train", "valid", "test", "unseen"] = "train"
    count: int | None = pydantic.Field(default=None, ge=1, le=10_000_000)
    """Number of sentences; null: 100,000 of train, 1,000 of the other splits."""
    seed: int = 0
    second_wording: float = pydantic.Field(default=0.0, ge=0.0, le=1.0)
    """Chance of the second right translation, which every third sentence has."""


def _kind_of_path(path: str, options: Mapping[str, Any]) -> str:
    return (
        "tsv" if path.endswith(_TSV_ENDINGS) or {"columns", "header"} & options.keys() else "files"
    )


Corpus = Annotated[
    Annotated[
        FilesCorpus | TsvCorpus | KnownCorpus | PocketCorpus, pydantic.Field(discriminator="kind")
    ],
    pydantic.BeforeValidator(partial(expand, kind_of_path=_kind_of_path)),
]
Corpora = Annotated[tuple[Corpus, ...], pydantic.BeforeValidator(as_list)]


PARTS: tuple[Part, ...] = ("train", "valid", "test")


class DataSettings(Settings):
    """Languages, corpora, filters and the length of rows."""

    source: LanguageCode
    """Language code of the source: en in corpus/train.en, or a name in `columns`."""
    target: LanguageCode
    train: Corpora
    """Empty only in the recipe of an imported model, whose training is not known."""
    valid: Corpora = ()
    test: Corpora = ()
    filter: FilterSettings = FilterSettings()
    row_tokens: int = pydantic.Field(default=128, ge=16, le=8192, multiple_of=8)
    """Target tokens of a row; the source row follows the proportion of the corpus. Longer sentences
    are left out."""

    target_order: TargetOrder = "written"
    """reversed: the model writes the last token first, from right to left, and its translations are
    turned round again. Such a model judges the translations of others (`headwise rerank`)."""

    directions: tuple[Direction, ...] = ()
    """Several directions in one translator, e.g. [en-de, de-en], without source and target."""
    zero_shot: tuple[Direction, ...] = ()
    """Directions that are not learnt but measured, in validation and test."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _name_first(cls, data: Any) -> Any:
        """Source and target of several directions are those of the first."""
        if not isinstance(data, Mapping) or not data.get("directions"):
            return data
        first = data["directions"][0] if isinstance(data["directions"], list | tuple) else None
        codes = first.split("-") if isinstance(first, str) else []
        return {**dict(zip(("source", "target"), codes, strict=False)), **data}

    @pydantic.model_validator(mode="after")
    def _check_languages(self) -> "DataSettings":
        if self.source == self.target:
            raise SettingsError(
                f"source and target are both {self.source!r}; give two different language codes",
                f"source 与 target 都是 {self.source!r}；请给出两种不同的语言代码",
            )
        check_corpora(self)
        return self

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the training corpora, each once."""
        own = (one.tag for one in self.train if one.tag is not None)
        return tuple(dict.fromkeys((*map(target_tag, self.targets), *own)))

    @property
    def targets(self) -> tuple[str, ...]:
        """The languages that one of several directions writes; () for a single direction."""
        return tuple(dict.fromkeys(languages_of(one)[1] for one in self.directions))

    @property
    def in_arrows(self) -> str:
        """The directions for people: `en → de, de → en`."""
        return in_arrows(self.directions or [f"{self.source}-{self.target}"])

    @property
    def all_directions(self) -> tuple[str, ...]:
        """Those that are learnt or only measured; () for a single direction."""
        return (*self.directions, *self.zero_shot)

    def reads(self, corpus: Corpus, direction: str, part: Part) -> bool:
        """Whether a corpus of this part is read in one of several directions."""
        if part == "train" and direction in self.zero_shot:
            return False
        return corpus.directions is None or direction in corpus.directions

    def one_way(self, direction: str) -> "DataSettings":
        """The data of one of several directions, as if there were no others."""
        source, target = languages_of(direction)
        parts: dict[str, Any] = {
            part: tuple(one for one in self.corpora(part) if self.reads(one, direction, part))
            for part in PARTS
        }
        single = {"source": source, "target": target, "directions": (), "zero_shot": ()}
        return self.model_copy(update={**single, **parts})

    def corpora(self, part: Part) -> tuple[Corpus, ...]:
        named: tuple[Corpus, ...] = getattr(self, part)
        return named


def check_corpora(data: DataSettings) -> None:
    """Refuse corpora that cannot be read in the directions of the data."""
    check_several(data.directions, data.zero_shot)
    if data.directions and (data.source, data.target) != languages_of(data.directions[0]):
        raise SettingsError(*_OTHER_FIRST)
    for corpus in (*data.train, *data.valid, *data.test):
        check_named(corpus.directions, data.all_directions)
        if data.directions:
            _check_columns(corpus)
    for one in map(data.one_way, data.all_directions) if data.directions else (data,):
        for corpus in (*one.train, *one.valid, *one.test):
            _check_split(corpus, one)
    if data.train:
        check_learnt([one for one in data.directions if not data.one_way(one).train])


def _check_columns(corpus: Corpus) -> None:
    if isinstance(corpus, TsvCorpus) and corpus.columns is None:
        raise SettingsError(
            f"{corpus.path} is read in several directions, so its columns must be named; add e.g. "
            "columns: {en: 0, de: 1}",
            f"{corpus.path} 要按多个方向读取，因此必须写明各列；例如 columns: {{en: 0, de: 1}}",
        )


def _check_split(corpus: Corpus, data: DataSettings) -> None:
    if not isinstance(corpus, _SplitCorpus) or not corpus.split:
        return
    if corpus.split.by not in (data.source, data.target):
        raise SettingsError(
            f"split.by is {corpus.split.by!r}; it must be {data.source!r} or {data.target!r}",
            f"split.by 为 {corpus.split.by!r}；必须是 {data.source!r} 或 {data.target!r}",
        )


def read_pairs(data: DataSettings, corpus: Corpus) -> Iterator[Pair]:
    """The pairs of a corpus as they are learnt: in each direction, after the target's word."""
    if not data.directions:
        yield from read_corpus(corpus, source=data.source, target=data.target)
    for direction in data.directions:
        if direction in (corpus.directions or data.directions):
            source, target = languages_of(direction)
            pairs = read_corpus(corpus, source=source, target=target)
            yield from _mark(pairs, target_tag(target))


def files_of(data: DataSettings, corpus: Corpus, part: Part) -> list[Path]:
    """The files of a corpus in all directions in which it is read; a missing one is an error."""
    if not data.directions:
        return corpus_files(corpus, source=data.source, target=data.target)
    read = [languages_of(one) for one in data.all_directions if data.reads(corpus, one, part)]
    found = (corpus_files(corpus, source=source, target=target) for source, target in read)
    return list(dict.fromkeys(chain.from_iterable(found)))


def corpus_name(corpus: Corpus) -> str:
    """A short name for reports."""
    match corpus:
        case FilesCorpus() | TsvCorpus():
            return str(corpus.path)
        case KnownCorpus():
            return f"known:{corpus.name}"
        case PocketCorpus():
            return f"pocket:{corpus.split}"


def read_corpus(corpus: Corpus, *, source: str, target: str) -> Iterator[Pair]:
    """The pairs of a corpus in the order of its files, after `split`, `keep` and `limit`."""
    match corpus:
        case FilesCorpus():
            pairs = read_parallel(*_find_files(corpus, source, target))
        case TsvCorpus():
            columns = choose_columns(
                corpus.columns or {source: 0, target: 1}, corpus.keep, source, target
            )
            pairs = read_tsv(find_text_file(corpus.path), replace(columns, header=corpus.header))
        case KnownCorpus():
            pairs = _read_known(corpus, source, target)
        case PocketCorpus():
            pairs = read_pocket(corpus, source=source, target=target)
    if isinstance(corpus, _SplitCorpus) and corpus.split is not None:
        pairs = _take_part(pairs, corpus.split, by_source=corpus.split.by == source)
    taken = pairs if corpus.limit is None else islice(pairs, corpus.limit)
    return taken if corpus.tag is None else _mark(taken, corpus.tag)


def _mark(pairs: Iterator[Pair], tag: str) -> Iterator[Pair]:
    return (pair._replace(source=f"{tag} {pair.source}") for pair in pairs)


def corpus_files(corpus: Corpus, *, source: str, target: str) -> list[Path]:
    """The files of a corpus; a missing one is an error."""
    match corpus:
        case FilesCorpus():
            return list(_find_files(corpus, source, target))
        case TsvCorpus():
            return [find_text_file(corpus.path)]
        case KnownCorpus():
            part = find_known(corpus.name, languages=(source, target))
            return [part.path] if part.columns else list(find_parallel(part.path, source, target))
        case PocketCorpus():
            return []


def _find_files(corpus: FilesCorpus, source: str, target: str) -> tuple[Path, Path]:
    """Both files; those of a distilled corpus are compared with its manifest."""
    found = find_parallel(corpus.path, source, target)
    check_sealed_corpus(corpus.path)
    return found


def choose_columns(
    columns: Mapping[str, int], keep: tuple[Keep, ...], source: str, target: str
) -> Columns:
    if source not in columns or target not in columns:
        raise SettingsError(
            f"columns names {', '.join(columns)}, but {source!r} and {target!r} are needed; "
            f"write e.g. columns: {{{source}: 0, {target}: 1}}",
            f"columns 中有 {'、'.join(columns)}，但需要 {source!r} 和 {target!r}；例如 columns: "
            f"{{{source}: 0, {target}: 1}}",
        )
    return Columns(
        columns[source], columns[target], {rule.column: frozenset(rule.values) for rule in keep}
    )


def _read_known(corpus: KnownCorpus, source: str, target: str) -> Iterator[Pair]:
    part = find_known(corpus.name, languages=(source, target))
    if part.columns is None:
        return read_parallel(*find_parallel(part.path, source, target))
    keep = (
        tuple(Keep(column=c, values=v) for c, v in part.keep.items())
        if corpus.keep is None
        else corpus.keep
    )
    return read_tsv(part.path, choose_columns(part.columns, keep, source, target))


def _take_part(pairs: Iterator[Pair], split: SplitSettings, *, by_source: bool) -> Iterator[Pair]:
    return (
        pair
        for pair in pairs
        if part_of(pair.source if by_source else pair.target, split) == split.part
    )


def read_pocket(corpus: PocketCorpus, *, source: str, target: str) -> Iterator[Pair]:
    """Sentences of the built-in grammar; the line number is the index of the sentence."""
    count = corpus.count or (100_000 if corpus.split == "train" else 1_000)
    if count <= MAX_REMEMBERED:
        return iter(_remember_pocket(corpus, count, source, target))
    return _speak_pocket(corpus, count, source, target)


def _speak_pocket(corpus: PocketCorpus, count: int, source: str, target: str) -> Iterator[Pair]:
    from headwise.pocket import texts  # imported here, because few runs need the grammar

    spoken = texts(
        corpus.split,
        count,
        (source, target),
        seed=corpus.seed,
        second_wording=corpus.second_wording,
    )
    for number, (left, right) in enumerate(spoken, start=1):
        yield Pair(left, right, f"pocket:{corpus.split}", number)


@lru_cache(maxsize=6)  # as many directions as three languages have
def _remember_pocket(
    corpus: PocketCorpus, count: int, source: str, target: str
) -> tuple[Pair, ...]:
    """Keep the sentences: preparation reads a corpus four times, and generating is slow."""
    return tuple(_speak_pocket(corpus, count, source, target))
