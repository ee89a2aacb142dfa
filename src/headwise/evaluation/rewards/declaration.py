"""The base class of the rewards that a recipe can name: a number for a translation and its
reference, higher is better.

    reward = kind.build(text)(["Der Hund schläft ."], ["Der Hund ist müde ."])   [0.35]

A reward declares itself (settings/kind.py) and builds a function of lists of texts. Another package
adds one through the entry points `headwise.rewards` (settings/added_kinds.py).
Tested by the tests of each reward, and by a reward that another package adds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headwise.settings.kind import Kind

Reward = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""(translations, their references) → a number for each translation."""


@dataclass(frozen=True)
class TextForm:
    """What a metric has to know of the text that it compares."""

    language: str | None = None
    pretokenized: bool = False
    """The text is tokenised already: its tokens count as they stand."""
    lowercase: bool = False
    """Ignore upper and lower case."""


class RewardKind(Kind):
    """Settings of one reward, and what it declares."""

    def build(self, text: TextForm) -> Reward:
        raise NotImplementedError(f"{type(self).__name__} does not say how it is computed")
