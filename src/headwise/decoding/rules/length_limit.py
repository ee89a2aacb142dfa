"""Computes the maximal number of tokens that are generated for a sentence, from the length of its
source.

    limit = min(limit, factor · source tokens + extra)        the end of the sentence is counted

Tested by hand-worked cases and through every search.
"""

from pydantic import Field

from headwise.settings import Settings


class LengthLimit(Settings):
    """At most factor · (source tokens) + extra tokens, and never more than `limit`."""

    factor: float = Field(default=2.0, ge=0, le=1000)
    extra: int = Field(default=20, ge=0, le=65_536)
    limit: int = Field(default=512, ge=1, le=65_536)

    def for_source(self, num_tokens: int) -> int:
        return max(1, min(self.limit, int(self.factor * num_tokens) + self.extra))


def limit_for(max_length: int | LengthLimit, num_source_tokens: int) -> int:
    """How many tokens (end of sentence included) may be generated for a source of this length."""
    return max_length if isinstance(max_length, int) else max_length.for_source(num_source_tokens)


def cap_limit(max_length: int | LengthLimit, most: int) -> int | LengthLimit:
    """The same limit, and never more than `most` tokens."""
    if isinstance(max_length, int):
        return min(max_length, most)
    return max_length.model_copy(update={"limit": min(max_length.limit, most)})
