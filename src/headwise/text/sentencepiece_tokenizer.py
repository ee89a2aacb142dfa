"""Subword tokenizer: frequent words stay whole, rare words are split into pieces.

Byte pair encoding starts from characters and repeatedly merges the most frequent pair of neighbours
(Sennrich et al. 2016); the unigram model keeps the pieces that make the text most likely (Kudo
2018). Both are trained by sentencepiece (Kudo and Richardson 2018) in a process of its own
(sentencepiece_training.py). A character outside the vocabulary becomes its UTF-8 bytes, so that no
text is unknown. With identity normalisation the text is restored exactly:

    decode(encode(x)) == x      for every clean line, including runs of spaces

The sentencepiece format writes a space as "▁", so a "▁" in the text itself is escaped
(`tokenizer.py`) by a private-use character, which escapes itself, and a digit. Tested against: that
law on generated text, and the ids of sentencepiece.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from headwise.errors import CheckpointError, DataError, SettingsError, UsageError
from headwise.storage import write_bytes, write_json
from headwise.text.chinese_words import BOUNDARY
from headwise.text.sentencepiece_limits import MAX_PIECES, is_bounded
from headwise.text.sentencepiece_training import PieceTrainingError, Watch, train_pieces
from headwise.text.tokenizer import (
    BOS,
    EOS,
    NUM_SPECIAL,
    PAD,
    UNKNOWN,
    UNKNOWN_TEXT,
    WORD_START,
    escape,
    unescape,
)

MODEL_FILE = "pieces.model"
DESCRIPTION_FILE = "pieces.json"
MAX_MODEL_BYTES = 32 << 20
_SMALL_BATCH = 32
_MAX_WORDS, _MAX_WORD_LENGTH = 1 << 17, 64
"""Words whose ids are cached: at most about 30 MB."""
# What sentencepiece's binding makes of bad Unicode.
_ENCODING_ERRORS = (
    RuntimeError,
    TypeError,
    UnicodeError,
)


class PieceTokenizer:
    """A sentencepiece model, and whether its normalisation preserves the text."""

    def __init__(self, model: bytes, *, reversible: bool) -> None:
        self.model, self.reversible = model, reversible
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._words: dict[str, list[int]] = {}

    @property
    def size(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, text: str) -> list[int]:
        try:
            return list(self._processor.encode(escape(text)))
        except _ENCODING_ERRORS:
            require_unicode([text])
            raise

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        try:
            escaped = [escape(text) for text in texts]
            if self._words_are_apart:
                return [self._encode_words(text) for text in escaped]
            # Starting sentencepiece's threads takes longer than a few sentences.
            if len(escaped) < _SMALL_BATCH:
                return [list(self._processor.encode(text)) for text in escaped]
            return list(self._processor.encode(escaped))
        except _ENCODING_ERRORS:
            require_unicode(texts)
            raise

    @functools.cached_property
    def _words_are_apart(self) -> bool:
        """Whether the ids of a sentence are those of its words: no piece crosses a space."""
        pieces = (self._processor.id_to_piece(number) for number in range(NUM_SPECIAL, self.size))
        return self.reversible and not any(
            WORD_START in piece.lstrip(WORD_START) for piece in pieces
        )

    def _encode_words(self, text: str) -> list[int]:
        """Encode word by word with a cache: most words of a corpus have been seen before (Zipf)."""
        if "  " in text or not text or text[0] == " " or text[-1] == " ":
            # Spaces beside spaces become pieces of their own.
            return list(self._processor.encode(text))
        ids: list[int] = []
        for word in text.split(" "):
            known = self._words.get(word)
            if known is None:
                known = self._processor.encode(word)
                if len(self._words) < _MAX_WORDS and len(word) <= _MAX_WORD_LENGTH:
                    self._words[word] = known
            ids += known
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        known = [int(number) for number in ids]
        if known and not 0 <= min(known) <= max(known) < self.size:
            raise UsageError(
                f"id {max(known) if max(known) >= self.size else min(known)} is not in the "
                f"vocabulary of {self.size}; use the tokenizer the ids were made with",
                f"编号 {max(known) if max(known) >= self.size else min(known)} 不在大小为 "
                f"{self.size} 的词表内；请使用生成这些编号的分词器",
            )
        return unescape(self._processor.decode(known))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._processor.id_to_piece(int(number)) for number in ids]

    def surfaces(self) -> list[bytes]:
        model = self._processor
        return [
            b""
            if model.is_control(number)
            else UNKNOWN_TEXT.encode()
            if model.is_unknown(number)
            else bytes([int(piece[3:-1], 16)])
            if model.is_byte(number)
            else piece.replace(WORD_START, " ").encode()
            for number, piece in enumerate(self.pieces(range(self.size)))
        ]

    def save(self, directory: Path) -> None:
        write_bytes(directory / MODEL_FILE, self.model)
        write_json(
            directory / DESCRIPTION_FILE, {"kind": "sentencepiece", "reversible": self.reversible}
        )


def require_unicode(texts: Sequence[str]) -> None:
    """Refuse lone surrogates, which are no text."""
    try:
        for text in texts:
            text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"the text holds a lone surrogate at character {error.start} and is not valid "
            "Unicode; remove it",
            f"文本第 {error.start} 个字符是孤立的代理项，不是合法的 Unicode；请删除",
        ) from error


@dataclass(frozen=True)
class Cuts:
    """What is said of where text is cut into pieces."""

    mark: Callable[[str], str] | None = None
    """Inserts boundaries into a line that no piece may cross (chinese_words.py)."""
    tags: tuple[str, ...] = ()
    """Words that become pieces of their own, with the space before them."""


def learn_pieces(
    lines: Iterable[str],
    *,
    algorithm: str,
    size: int,
    byte_fallback: bool,
    coverage: float,
    normalization: str,
    cuts: Cuts = Cuts(),
    watch: Watch | None = None,
) -> PieceTokenizer:
    """Train sentencepiece on lines (sampled by the caller); the same lines give the same model.

    Where pieces may not cross a boundary, fewer than `size` may be possible. `watch` is called with
    the share that is done.
    """
    identity, mark = normalization == "identity", cuts.mark
    bounded: dict[str, Any] = (
        {} if mark is None else {"pretokenization_delimiter": BOUNDARY, "hard_vocab_limit": False}
    )
    options = {
        "model_type": algorithm,
        "vocab_size": size,
        "character_coverage": coverage,
        "byte_fallback": byte_fallback,
        "normalization_rule_name": normalization,
        "remove_extra_whitespaces": not identity,
        "shuffle_input_sentence": False,
        "input_sentence_size": 0,
        "num_threads": 8,  # part of the result for unigram: sums are split by thread
        "pad_id": PAD,
        "bos_id": BOS,
        "eos_id": EOS,
        "unk_id": UNKNOWN,
        "unk_surface": UNKNOWN_TEXT,
        **bounded,
    }
    if cuts.tags:
        options["user_defined_symbols"] = [WORD_START + tag for tag in cuts.tags]
    given = [
        escape(line) if mark is None else mark(escape(line)) for line in weigh_lines(list(lines))
    ]
    try:
        model = train_pieces(given, options, watch=watch)
    except PieceTrainingError as error:
        raise _explain_failure(str(error), size) from error
    return PieceTokenizer(model, reversible=identity and byte_fallback)


def weigh_lines(lines: list[str]) -> list[str]:
    """Lines as often as they occur, because frequent words should be whole; but each once if most
    lines are repetitions.

    A file that was joined with itself, or a line repeated a million times, says nothing about how
    frequent its words are.
    """
    hashes = np.fromiter(map(hash, lines), dtype=np.int64, count=len(lines))
    if 2 * len(np.unique(hashes)) > len(lines):
        return lines
    return list(dict.fromkeys(lines))


def _explain_failure(message: str, size: int) -> DataError | SettingsError:
    """sentencepiece's error as our message; its message ends with the possible size."""
    if "too high" in message and "<= " in message:
        largest = message.rpartition("<= ")[2].rstrip(". ")
        return SettingsError(
            f"text.size is {size:,}, but this text has room for a vocabulary of at most {largest}; "
            f"set text.size={largest} or less, or give more text",
            f"text.size 为 {size:,}，但这些文本最多只够 {largest} 个词条；请设 "
            f"text.size={largest} 或更小，或提供更多文本",
        )
    if "smaller than required" in message:
        needed = message.partition(" vs ")[2].partition(".")[0]
        return SettingsError(
            f"text.size is {size:,}, but the single characters of this text already need {needed}; "
            f"set text.size above {needed} or lower text.coverage",
            f"text.size 为 {size:,}，但这些文本的单个字符就需要 {needed} 个；请把 text.size "
            "设得更大，或降低 text.coverage",
        )
    if "sentences_.empty" in message or "empty" in message.lower():
        return DataError(
            "the text to learn the pieces from is empty; give a corpus with at least one line",
            "用于学习词元的文本为空；请提供至少一行的语料",
        )
    return DataError(
        f"sentencepiece could not learn from this text: {message}",
        f"sentencepiece 训练失败：{message}",
    )


def load_pieces(directory: Path, *, reversible: bool) -> PieceTokenizer:
    """A saved model. The caller has verified the manifest, because sentencepiece does not notice
    flipped bits.
    """
    return PieceTokenizer(read_model(directory / MODEL_FILE), reversible=reversible)


def read_model(path: Path) -> bytes:
    """The content of a sentencepiece file that takes bounded memory and that sentencepiece can
    read.
    """
    with contextlib.suppress(OSError, RuntimeError):
        if 0 < path.stat().st_size <= MAX_MODEL_BYTES and is_bounded(model := path.read_bytes()):
            sentencepiece.SentencePieceProcessor(model_proto=model)
            return model
    raise CheckpointError(
        f"is not a sentencepiece model of at most {MAX_MODEL_BYTES:,} bytes and {MAX_PIECES:,} "
        "pieces; use another copy of the model",
        f"不是（不超过 {MAX_MODEL_BYTES:,} 字节、{MAX_PIECES:,} 个词元的）sentencepiece 模型；"
        "请使用模型的其他副本",
        file=path,
    )
