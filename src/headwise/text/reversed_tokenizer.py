"""Writes the tokens of a text in reverse order, so that a translator learns to write from right to
left.

    encode(x) = reverse(encode of the tokenizer inside)      decode(reverse(y)) gives the text

The model's first word is then the last one of the sentence; text goes in and comes out in its
normal order. A model that writes from right to left knows the end of a sentence best, and so judges
translations of the usual models well (Liu et al. 2016; Sennrich et al. 2017). Everything that
encodes and decodes works on it as it is. Phrases that a search looks for from left to right are
refused for it (decoding/rules/phrases.py).

Tested against: the tokenizer inside, with the tokens turned round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headwise.text.tokenizer import Tokenizer

TargetOrder = Literal["written", "reversed"]


@dataclass(frozen=True, eq=False)
class ReversedTokenizer:
    """A tokenizer whose tokens stand in reverse order."""

    inside: Tokenizer

    @property
    def size(self) -> int:
        return self.inside.size

    @property
    def reversible(self) -> bool:
        return self.inside.reversible

    def encode(self, text: str) -> list[int]:
        return self.inside.encode(text)[::-1]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [ids[::-1] for ids in self.inside.encode_batch(texts)]

    def decode(self, ids: Sequence[int]) -> str:
        return self.inside.decode(ids[::-1])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return self.inside.pieces(ids)

    def surfaces(self) -> list[bytes]:
        return self.inside.surfaces()

    def save(self, directory: Path) -> None:
        """Write the tokenizer inside; the pair remembers the order (tokenizer_pair.py)."""
        self.inside.save(directory)


def in_order(tokenizer: Tokenizer, order: TargetOrder) -> Tokenizer:
    """The tokenizer with its tokens in this order."""
    plain = as_written(tokenizer)
    return ReversedTokenizer(plain) if order == "reversed" else plain


def as_written(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer with its tokens in the order of the text."""
    return tokenizer.inside if isinstance(tokenizer, ReversedTokenizer) else tokenizer
