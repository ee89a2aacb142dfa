"""Applies the rules that need only the length of a hypothesis: special tokens, minimum length,
limit, prefix.

The three engines have lengths in different forms: one number for all rows, a tensor (in a recorded
step), or a number for each row. Each rule is one function that accepts all of them. `length` counts
the tokens of a hypothesis including the next one.
Tested through every search, and engine against engine.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.text.tokenizer import EOS, PAD, UNKNOWN

MINUS_INFINITY = float("-inf")


def forbid_special(scores: Float[Tensor, "*row vocab"], settings: GenerationSettings) -> None:
    """Padding and the beginning of a sentence are never generated, unknown tokens if so set."""
    scores[..., :EOS] = MINUS_INFINITY
    if not settings.allow_unknown:
        scores[..., UNKNOWN] = MINUS_INFINITY


def is_too_short(length: int | Tensor, settings: GenerationSettings) -> bool | Tensor:
    """Whether a sentence that ends with its token number `length` has too few tokens."""
    return length <= settings.min_length


def look_up(
    scores: Float[Tensor, "row vocab"], forced: Int[Tensor, "row 1"]
) -> Float[Tensor, "row 1"]:
    """The log-probabilities of forced tokens, read before other rules overwrite them."""
    return scores.gather(1, forced.clamp(min=PAD))


def force_prefix(
    scores: Float[Tensor, "row vocab"],
    forced: Int[Tensor, "row 1"],
    values: Float[Tensor, "row 1"],
) -> None:
    """Leave nothing but the forced token of each row; -1 forces nothing."""
    active = forced >= PAD
    scores.masked_fill_(active, MINUS_INFINITY)
    scores.scatter_(1, forced.clamp(min=PAD), torch.where(active, values, MINUS_INFINITY))


def force_end(scores: Float[Tensor, "row vocab"], is_last: Bool[Tensor, "row"]) -> None:
    """The end of the sentence, free of cost, in the rows whose limit is reached."""
    scores.masked_fill_(is_last[:, None], MINUS_INFINITY)
    scores[:, EOS] = torch.where(is_last, 0.0, scores[:, EOS])
