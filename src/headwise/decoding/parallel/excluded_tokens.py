"""Lists the tokens that a parallel decoder must not choose as a word.

An autoregressive decoder ends a sentence by writing </s>. A parallel decoder whose length is known
writes words at all of its positions, so </s> is excluded, like padding and <s>. The unknown token
is excluded if the settings say so.

Tested through every search of decoding/parallel.
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
