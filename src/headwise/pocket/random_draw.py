"""Makes random choices without state: every choice takes a remainder of one large number.

The number is a hash of seed, split and index, so that sentence i of seed s is the same on every
machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

Item = TypeVar("Item")


class Draw:
    """Choices for one sentence; ``pairs`` collects the combinations that may be held out of
    training.
    """

    __slots__ = ("pairs", "state")

    def __init__(self, key: str) -> None:
        self.state = int.from_bytes(blake2b(key.encode()).digest(), "little")
        self.pairs: list[tuple[str, str]] = []

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1."""
        self.state, remainder = divmod(self.state, bound)
        return remainder

    def choose(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        self.state, remainder = divmod(self.state, len(items))
        return items[remainder]

    def percent(self, chance: int) -> bool:
        """True in chance of 100 cases."""
        return self.below(100) < chance

    def pair(self, kind: str, first: str, second: str) -> None:
        """Note a combination: two concepts that depend on each other here."""
        self.pairs.append((f"{kind}:{first}", second))
