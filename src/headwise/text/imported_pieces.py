"""Tokenizer of an imported model: sentencepiece cuts the text, a list of another program numbers
the pieces.

Marian cuts each language with a sentencepiece model of its own (`source.spm`, `target.spm`), but
numbers the pieces of both by one list (`vocab.json`), so that embeddings can be tied:

    text  → sentencepiece →  ▁Hel lo  → list →  17 4098          a piece that is not listed: unknown

The list is kept in its order behind the four special ids of every vocabulary (tokenizer.py). A
model that translates into several languages reads a code before the text, `>>cmn_Hans<<`, which is
an entry of the list and not cut; `prefix` is the code for texts that begin with none. sentencepiece
normalises the text (NFKC), so that it is not restored exactly.

Tested against: the ids of transformers' MarianTokenizer.
"""

from collections.abc import Sequence
from pathlib import Path

import sentencepiece

from headwise.errors import CheckpointError, UsageError
from headwise.storage import write_bytes
from headwise.text.sentencepiece_tokenizer import MODEL_FILE, read_model, require_unicode
from headwise.text.tokenizer import NUM_SPECIAL, UNKNOWN, UNKNOWN_TEXT, WORD_START
from headwise.text.vocabulary import FILE, Vocabulary, load_vocabulary

KIND = "imported_pieces"
CODE_START, CODE_END = ">>", "<<"


class ImportedPieces:
    """A sentencepiece model and the list that numbers its pieces."""

    reversible = False

    def __init__(self, model: bytes, vocabulary: Vocabulary, *, prefix: str | None = None) -> None:
        self.model, self.vocabulary, self.prefix = model, vocabulary, prefix
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self._before = [] if prefix is None else [vocabulary.ids[prefix]]

    @property
    def size(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> list[int]:
        require_unicode([text])
        return self._encode(text)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        require_unicode(texts)
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> list[int]:
        before = self._before
        end = text.find(CODE_END) if text.startswith(CODE_START) else -1
        code = text[: end + len(CODE_END)]
        if end != -1 and code in self.vocabulary.ids:
            before, text = [self.vocabulary.ids[code]], text[len(code) :]
        pieces = self._processor.encode(text, out_type=str)
        # The code stands before a text, and is no text by itself.
        return [*before, *map(self.vocabulary.id_of, pieces)] if pieces else []

    def decode(self, ids: Sequence[int]) -> str:
        known = [int(number) for number in ids]
        wrong = next((number for number in known if not 0 <= number < self.size), None)
        if wrong is not None:
            raise UsageError(
                f"id {wrong} is not in the vocabulary of {self.size}; use the tokenizer the ids "
                "were made with",
                f"编号 {wrong} 不在大小为 {self.size} 的词表内；请使用生成这些编号的分词器",
            )
        pieces = [
            UNKNOWN_TEXT if number == UNKNOWN else self.vocabulary.entry_of(number)
            for number in known
            if number >= NUM_SPECIAL or number == UNKNOWN
        ]
        text: str = self._processor.decode(pieces) if pieces else ""
        # A piece of the other language is unknown to this model, which leaves its mark in the text.
        return text.replace(WORD_START, " ").strip()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary.entry_of(int(number)) for number in ids]

    def surfaces(self) -> list[bytes]:
        special = [b"", b"", b"", UNKNOWN_TEXT.encode()]
        return special + [self._surface(entry) for entry in self.vocabulary.entries]

    def _surface(self, entry: str) -> bytes:
        number = self._processor.piece_to_id(entry)
        if self._processor.is_byte(number):
            return bytes([int(entry[3:-1], 16)])
        return entry.replace(WORD_START, " ").encode()

    def save(self, directory: Path) -> None:
        write_bytes(directory / MODEL_FILE, self.model)
        settings = {"kind": KIND} if self.prefix is None else {"kind": KIND, "prefix": self.prefix}
        self.vocabulary.save(directory, settings)


def load_imported_pieces(directory: Path) -> ImportedPieces:
    """A saved tokenizer; the caller has verified the manifest."""
    vocabulary, settings = load_vocabulary(directory, kind=KIND)
    prefix = settings.get("prefix")
    if prefix is not None and prefix not in vocabulary.ids:
        raise CheckpointError(
            f"names the prefix {prefix!r:.60}, which is no entry of its list; use another copy of "
            "the model",
            f"其中的前缀 {prefix!r:.60} 不在它的词表里；请使用模型的其他副本",
            file=directory / FILE,
        )
    return ImportedPieces(read_model(directory / MODEL_FILE), vocabulary, prefix=prefix)
