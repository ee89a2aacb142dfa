"""Puts a word before every source text, so that a translator of several languages knows which one
to write.

    encode("The dog is old.") = inside.encode("<2de> The dog is old.")

The tokenizer inside learnt the word as one piece, and the model has seen it before every source
that was to become German. With this tokenizer, such a model is an ordinary translator into German:
searches, scores and limits know nothing of the word. It is never saved, because it belongs to the
use of a model.

Tested against: the tokenizer inside, with the word in the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headwise.text.tokenizer import Tokenizer


@dataclass(frozen=True, eq=False)
class TaggedTokenizer:
    """A tokenizer of sources that begin with a word."""

    inside: Tokenizer
    tag: str

    @property
    def size(self) -> int:
        return self.inside.size

    @property
    def reversible(self) -> bool:
        return False

    def encode(self, text: str) -> list[int]:
        return self.inside.encode(f"{self.tag} {text}")

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return self.inside.encode_batch([f"{self.tag} {text}" for text in texts])

    def decode(self, ids: Sequence[int]) -> str:
        return self.inside.decode(ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.inside.pieces(ids)

    def surfaces(self) -> list[bytes]:
        return self.inside.surfaces()

    def save(self, directory: Path) -> None:
        """Write the tokenizer inside."""
        self.inside.save(directory)
