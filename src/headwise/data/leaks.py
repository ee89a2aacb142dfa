"""Sentences that are kept for validation and test, so that none of them is learnt from.

A split by one language keeps that language's sentences apart; the other side may still occur on both sides (two English
sentences with one Chinese translation). A training pair leaks if either of its sides stands on the same side of a validation or
test pair, letters and digits compared. Validation and test are small, so their hashes are held in memory.

Tested against: pairs that share a source, a target, both or neither with the held-out ones.
"""

import hashlib
from collections.abc import Iterable

from headwise.data.corpora import Pair
from headwise.text.cleaning import letters_and_digits


def hash_sentence(sentence: str) -> bytes:
    return hashlib.blake2b(letters_and_digits(sentence).encode("utf-8", "surrogatepass"), digest_size=8).digest()


class HeldOut:
    """The sides of all validation and test pairs."""

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        self._sources: set[bytes] = set()
        self._targets: set[bytes] = set()
        for pair in pairs:
            self._sources.add(hash_sentence(pair.source))
            self._targets.add(hash_sentence(pair.target))

    def holds(self, pair: Pair) -> bool:
        """Whether learning from this pair would show a sentence that the model is measured on."""
        if not self._sources:
            return False
        return hash_sentence(pair.source) in self._sources or hash_sentence(pair.target) in self._targets
