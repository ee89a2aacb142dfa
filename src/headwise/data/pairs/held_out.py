"""Finds training pairs that share a sentence with validation or test, so that they can be dropped.

A corpus is split by the sentences of one language. The sentences of the other language may still
occur in both splits (two English sentences with the same Chinese translation). A training pair
leaks if one of its sides equals the same side of a validation or test pair, compared by letters and
digits. Validation and test are small, so their hashes are kept in memory.

Tested against: pairs that share a source, a target, both or neither with the held-out ones.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from headwise.data.pairs.parallel_files import Pair
from headwise.text.cleaning import letters_and_digits


def hash_sentence(sentence: str) -> int:
    key = letters_and_digits(sentence).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")


@dataclass(frozen=True)
class HeldOut:
    """Hashes of the sides of all validation and test pairs."""

    sources: frozenset[int] = frozenset()
    targets: frozenset[int] = frozenset()

    @staticmethod
    def of(pairs: Iterable[Pair]) -> "HeldOut":
        sides = [(hash_sentence(pair.source), hash_sentence(pair.target)) for pair in pairs]
        return HeldOut(
            frozenset(source for source, _ in sides), frozenset(target for _, target in sides)
        )

    def holds(self, pair: Pair) -> bool:
        """Whether a side of this pair occurs in validation or test."""
        if not self.sources:
            return False
        return (
            hash_sentence(pair.source) in self.sources or hash_sentence(pair.target) in self.targets
        )
