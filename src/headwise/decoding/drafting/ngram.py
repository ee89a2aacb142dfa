"""Guesses the next tokens by what followed the last tokens where they occurred before (the n-gram
drafter). Nothing is trained.

    written   … a b c d … a b            the last two tokens, "a b", occurred before
    draft                      c d       and were followed by "c d"

The longest match of at most `longest` tokens counts. The sentence written so far is searched first,
its latest occurrence, then the source: a translation copies names, numbers and code, and there the
tokens of a shared vocabulary are the same. With separate vocabularies equal numbers mean different
tokens; the drafts are then wrong, and the output is right all the same. Where nothing matches
nothing is drafted, so a round without a match costs one step.

Saxena 2023 (prompt lookup decoding); Yang et al. 2023 (drafts from a reference text).
Tested on hand-worked cases and against greedy search.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from headwise.decoding.drafting.protocol import DraftedRow
from headwise.settings import Settings
from headwise.text.tokenizer import UNKNOWN


class NgramDrafterSettings(Settings):
    """What followed the same tokens earlier, in the translation or in the source."""

    kind: Literal["ngram"] = "ngram"
    longest: int = Field(default=3, ge=1, le=16)
    """Tokens that are compared, at most."""


class NgramDrafter:
    def __init__(self, longest: int) -> None:
        self.longest = longest

    def draft(self, rows: Sequence[DraftedRow], count: int) -> Sequence[Sequence[int]]:
        return [() if row.is_done else self._look_up(row, count) for row in rows]

    def _look_up(self, row: DraftedRow, count: int) -> Sequence[int]:
        for size in range(min(self.longest, len(row.tokens)), 0, -1):
            context = row.tokens[-size:]
            for text in (row.tokens, row.source):
                found = _after(context, text, count)
                if found:
                    return found
        return ()


def _after(context: Sequence[int], text: Sequence[int], count: int) -> Sequence[int]:
    """At most `count` tokens after the last occurrence of `context` that has any after it."""
    size = len(context)
    for first in range(len(text) - size - 1, -1, -1):
        if list(text[first : first + size]) == context:
            following = text[first + size : first + size + count]
            # Special tokens are never written before the end.
            return [token for token in following if token >= UNKNOWN]
    return ()
