"""Tokens that a decoder without steps must not write at the position of a word.

A search token by token ends a sentence by writing </s>. A decoder that knows the length writes
words only, so </s> is excluded like padding and <s>; the unknown token is excluded if so set.

Tested through every search of this folder.
"""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.text.tokenizer import BOS, EOS, PAD, UNKNOWN


def excluded_tokens(settings: GenerationSettings) -> tuple[int, ...]:
    """The ids that stand for no word, and the unknown token if the settings do not allow it."""
    return (PAD, BOS, EOS) if settings.allow_unknown else (PAD, BOS, EOS, UNKNOWN)


def exclude(scores: Float[Tensor, "*row vocab"], excluded: Sequence[int]) -> None:
    """Give these tokens the log-probability -inf, in place."""
    scores[..., list(excluded)] = float("-inf")
