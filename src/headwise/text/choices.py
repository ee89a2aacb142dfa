"""The `text:` section of a recipe: which tokenizer a model has, and how it is learnt from the
corpus.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, ClassVar, Generic, Literal, TypeVar

import numpy as np
import pydantic

from headwise.errors import CheckpointError, SettingsError
from headwise.randomness import numpy_generator
from headwise.settings import Settings
from headwise.text.character_tokenizer import CharacterTokenizer, learn_characters
from headwise.text.chinese_words import HanUnits, marker_of
from headwise.text.imported_pieces import ImportedPieces
from headwise.text.reversed_tokenizer import as_written
from headwise.text.sentencepiece_tokenizer import Cuts, PieceTokenizer, learn_pieces
from headwise.text.sentencepiece_training import Watch
from headwise.text.tokenizer import Tokenizer
from headwise.text.tokenizer_pair import TokenizerPair, load_tokenizers
from headwise.text.word_tokenizer import WordTokenizer, learn_words

__all__ = [
    "CharacterSettings",
    "ImportedPieceSettings",
    "SentencePieceSettings",
    "TextSettings",
    "TokenizerPair",
    "WordSettings",
    "learn_tokenizers",
    "load_fitting_tokenizers",
]


Item = TypeVar("Item")
_BLOCK = 8192
_TOKENIZERS = {
    "sentencepiece": PieceTokenizer,
    "words": WordTokenizer,
    "characters": CharacterTokenizer,
    "imported_pieces": ImportedPieces,
}


class SentencePieceSettings(Settings):
    """Subword pieces by sentencepiece: the usual choice."""

    has_exact_size: ClassVar[bool] = True
    """Whether a vocabulary always has `size` entries; otherwise it has at most so many."""

    kind: Literal["sentencepiece"] = "sentencepiece"
    algorithm: Literal["bpe", "unigram"] = "bpe"
    """Byte pair encoding (bpe) or the unigram language model."""
    size: int = pydantic.Field(default=8000, ge=8, le=1_000_000)
    """Entries of the vocabulary, with special tokens and the 256 bytes."""
    shared: bool = True
    """One vocabulary for both languages (embeddings can then be tied), or one for each."""
    byte_fallback: bool = True
    """Characters outside the vocabulary become their UTF-8 bytes, so that no text is unknown."""
    coverage: float = pydantic.Field(default=0.9995, ge=0.98, le=1.0)
    """Share of the text whose characters get entries of their own; the rest become bytes (0.9995
    suits Chinese)."""
    normalization: Literal["identity", "nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf"] = "identity"
    """identity keeps the text exactly; the others change it (nfkc: full-width forms; _cf: lower
    case)."""
    sample: int = pydantic.Field(default=2_000_000, ge=1, le=20_000_000)
    """At most this many lines of each side are used for learning, drawn at random."""
    han: HanUnits | None = None
    """Chinese pieces stay within characters, or within words of a list; null: they may cross words.
    """
    words: str | None = None
    """With han: words, the file that lists them, separated by white space; null: the words of the
    pocket corpus."""

    @pydantic.model_validator(mode="after")
    def _check_words(self) -> "SentencePieceSettings":
        if self.words is not None and self.han != "words":
            raise SettingsError(
                f"text.words is {self.words!r}, but only text.han=words uses a list; add that, or "
                "leave text.words out",
                f"text.words 为 {self.words!r}，但只有 text.han=words 使用词表；请加上它，或去掉 "
                "text.words",
            )
        return self


class WordSettings(Settings):
    """Whole words, split at whitespace."""

    has_exact_size: ClassVar[bool] = False

    kind: Literal["words"] = "words"
    size: int = pydantic.Field(default=30_000, ge=8, le=10_000_000)
    """At most this many entries, the most frequent first."""
    shared: bool = False
    min_count: int = pydantic.Field(default=1, ge=1)
    """Rarer words become unknown."""
    lowercase: bool = False


class CharacterSettings(Settings):
    """Single characters."""

    has_exact_size: ClassVar[bool] = False

    kind: Literal["characters"] = "characters"
    size: int = pydantic.Field(default=10_000, ge=8, le=1_200_000)
    """At most this many entries, the most frequent first."""
    shared: bool = True
    min_count: int = pydantic.Field(default=1, ge=1)


class ImportedPieceSettings(Settings):
    """Pieces of sentencepiece, numbered by another program's list (`headwise import`)."""

    has_exact_size: ClassVar[bool] = True

    kind: Literal["imported_pieces"] = "imported_pieces"
    size: int = pydantic.Field(default=8000, ge=5, le=1_000_000)
    """Entries of the vocabulary, special ones included."""
    shared: bool = True
    """Both languages use one list of pieces; each has a sentencepiece model of its own."""
    prefix: str | None = None
    """An entry put before every source text that begins with none: the code of the target language
    of a model that knows several, e.g. >>cmn_Hans<<."""


TextSettings = Annotated[
    SentencePieceSettings | WordSettings | CharacterSettings | ImportedPieceSettings,
    pydantic.Field(discriminator="kind"),
]


def load_fitting_tokenizers(directory: Path, settings: TextSettings) -> TokenizerPair:
    """Saved tokenizers; an error if they are not of the kind in the recipe."""
    pair = load_tokenizers(directory)
    for tokenizer in (pair.source, pair.target):
        if not isinstance(as_written(tokenizer), _TOKENIZERS[settings.kind]):
            raise CheckpointError(
                f"does not hold a tokenizer of kind {settings.kind!r}, which the recipe asks for; "
                "use another copy of the model",
                f"其中不是配方所要的 {settings.kind!r} 分词器；请使用模型的其他副本",
                file=directory,
            )
    return pair


def learn_tokenizers(
    settings: TextSettings,
    source_lines: Iterable[str],
    target_lines: Iterable[str],
    *,
    seed: int = 0,
    watch: Watch | None = None,
    tags: Sequence[str] = (),
) -> TokenizerPair:
    """Learn the tokenizers of both sides; the same lines, settings and seed give the same result.

    `tags` are words of the source that are not cut into pieces.

    `watch` is called with the share of subword training that is done.
    """
    if settings.shared:
        tokenizer = learn_tokenizer(
            settings, chain(source_lines, target_lines), seed=seed, watch=watch, tags=tags
        )
        return TokenizerPair(tokenizer, tokenizer, shared=True)
    first, second = (None, None) if watch is None else _halves(watch)
    source = learn_tokenizer(settings, source_lines, seed=seed, watch=first, tags=tags)
    return TokenizerPair(
        source, learn_tokenizer(settings, target_lines, seed=seed, watch=second), shared=False
    )


def _halves(watch: Watch) -> tuple[Watch, Watch]:
    """Progress callbacks for two tasks that are reported as one."""
    return lambda share: watch(share / 2), lambda share: watch(0.5 + share / 2)


def learn_tokenizer(
    settings: TextSettings,
    lines: Iterable[str],
    *,
    seed: int = 0,
    watch: Watch | None = None,
    tags: Sequence[str] = (),
) -> Tokenizer:
    """Learn one tokenizer, for a task with one text (a language model)."""
    match settings:
        case SentencePieceSettings():
            return learn_pieces(
                sample_evenly(lines, settings.sample * (2 if settings.shared else 1), seed=seed),
                algorithm=settings.algorithm,
                size=settings.size,
                byte_fallback=settings.byte_fallback,
                coverage=settings.coverage,
                normalization=settings.normalization,
                cuts=Cuts(marker_of(settings.han, settings.words), tuple(tags)),
                watch=watch,
            )
        case WordSettings():
            return learn_words(
                lines,
                size=settings.size,
                min_count=settings.min_count,
                lowercase=settings.lowercase,
            )
        case CharacterSettings():
            return learn_characters(lines, size=settings.size, min_count=settings.min_count)
        case ImportedPieceSettings():
            raise SettingsError(
                f"text.kind={settings.kind} is the vocabulary of an imported model and is not "
                "learnt from text; name that model in model.start_from, or set "
                "text.kind=sentencepiece",
                f"text.kind={settings.kind} 是导入模型自带的词表，不从文本学习；请用 "
                "model.start_from 指明该模型，或设 text.kind=sentencepiece",
            )


def sample_evenly(items: Iterable[Item], limit: int, *, seed: int) -> list[Item]:
    """At most `limit` items of a stream, each equally likely, with bounded memory."""
    reservoir = Reservoir[Item](limit, seed=seed)
    remaining = iter(items)
    while block := list(islice(remaining, _BLOCK)):
        reservoir.add(block)
    return reservoir.kept


class Reservoir(Generic[Item]):
    """A uniform sample of a stream of unknown length (reservoir sampling, Vitter 1985).

    Item n replaces a random one of the first n positions, if that position is kept. Random
    positions are drawn in blocks; the sample does not depend on how the stream is cut into blocks.
    """

    def __init__(self, limit: int, *, seed: int) -> None:
        self.limit, self.kept = limit, list[Item]()
        self._seen, self._generator = 0, numpy_generator(seed, "sample")

    def add(self, items: Sequence[Item]) -> None:
        room = max(0, self.limit - self._seen)
        self.kept += items[:room]
        late = items[room:]
        first = self._seen + len(items) - len(late)
        places = self._generator.integers(np.arange(first, first + len(late)) + 1)
        for number in np.flatnonzero(places < self.limit).tolist():
            self.kept[places[number]] = late[number]
        self._seen += len(items)
