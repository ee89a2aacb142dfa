"""Deletes tokens and inserts placeholders in padded sequences, for whole batches at once.

A sequence stands at the left of its row: <s>, words, </s>, padding. An edit moves each token that
remains to a new place, and everything that belongs to the token (its log-probability, for example)
moves with it:

    delete   place of token i = number of kept tokens before i
    insert   place of token i = i + placeholders inserted in the gaps before i

Gap g lies between the tokens g and g + 1, so that nothing is inserted before <s> or after </s>. A
placeholder is a position whose word is not known. In `tokens` it has the id PLACEHOLDER, which
models do not read: `known` tells it apart from a word with the same id.

A row may hold several sentences, one after the other. Each begins with <s>, which occurs nowhere
else, so the tokens alone say to which sentence a token belongs and where it stands in it.

The Levenshtein Transformer learns (training/parallel/) and searches (decoding/parallel/) with these
edits. Tested against Python lists.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from headwise.text.tokenizer import BOS, EOS, PAD, UNKNOWN

PLACEHOLDER = UNKNOWN
"""The id at a position whose word is not known; it is not padding, so the position is attended
to."""


def is_word(tokens: Int[Tensor, "row position"]) -> Bool[Tensor, "row position"]:
    """Where a word or a placeholder stands: neither <s>, </s> nor padding."""
    return tokens > EOS


def width_with_begins(width: int) -> int:
    """The width of rows in which each sentence of a packed row of `width` has its <s>, too: each
    has a word and an end, so there are at most half as many sentences as tokens."""
    return width + width // 2


def sentence_numbers(tokens: Int[Tensor, "row position"]) -> Int[Tensor, "row position"]:
    """1, 2, … for the sentences of a row; 0 in padding."""
    return tokens.eq(BOS).cumsum(1).masked_fill(tokens.eq(PAD), 0)


def sentence_positions(tokens: Int[Tensor, "row position"]) -> Int[Tensor, "row position"]:
    """The position of each token in its sentence; that of <s> is 0. Padding is counted on."""
    place = torch.arange(tokens.shape[1], device=tokens.device)
    return place - torch.where(tokens.eq(BOS), place, 0).cummax(1).values


def places_after_deletion(
    tokens: Int[Tensor, "row position"], deleted: Bool[Tensor, "row position"]
) -> Int[Tensor, "row position"]:
    """The new place of each token; that of deleted tokens and padding is one past the last."""
    kept = ~deleted & tokens.ne(PAD)
    return torch.where(kept, kept.cumsum(1) - 1, tokens.shape[1])


def places_after_insertion(
    tokens: Int[Tensor, "row position"], counts: Int[Tensor, "row gap"], *, width: int
) -> Int[Tensor, "row position"]:
    """The new place of each token in rows of `width`; that of padding is one past the last."""
    inserted = counts.cumsum(1)
    shift = torch.cat([torch.zeros_like(inserted[:, :1]), inserted], dim=1)
    place = torch.arange(tokens.shape[1], device=tokens.device) + shift
    return torch.where(tokens.ne(PAD), place, width)


def move(
    values: Tensor, place: Int[Tensor, "row position"], *, width: int, empty: float = PAD
) -> Tensor:
    """Each value to its place in rows of `width`; `empty` where no value goes.

    The place `width` means that the value is dropped.
    """
    rows = values.new_full((len(values), width + 1), empty)
    return rows.scatter_(1, place, values)[:, :width]


def delete_tokens(
    tokens: Int[Tensor, "row position"], deleted: Bool[Tensor, "row position"]
) -> Int[Tensor, "row position"]:
    """The tokens that are left, in rows of the same width."""
    return move(tokens, places_after_deletion(tokens, deleted), width=tokens.shape[1])


def insert_placeholders(
    tokens: Int[Tensor, "row position"], counts: Int[Tensor, "row gap"], *, width: int
) -> tuple[Int[Tensor, "row width"], Bool[Tensor, "row width"]]:
    """The tokens with so many placeholders in each gap, and which positions are known.

    `width` holds the longest result; the counts of gaps that touch padding are 0.
    """
    place = places_after_insertion(tokens, counts, width=width)
    known = move(torch.ones_like(tokens), place, width=width).bool()
    length = tokens.ne(PAD).sum(1) + counts.sum(1)
    known |= torch.arange(width, device=tokens.device) >= length[:, None]
    moved = move(tokens, place, width=width)
    return torch.where(known, moved, PLACEHOLDER), known
