"""Applies the rules about the output, such as forbidden phrases, to a block of drafted (guessed)
tokens: the scores of every position are masked before its token is chosen.

The masks are those of greedy search. The history of position j of a block is what was written, then
the drafts before j. If those drafts are accepted, it is the history that greedy search has there;
if one is rejected, the scores after it are never read.

Rules that need only the length of a row are applied to all rows and positions at once
(`rules/next_token.py`). Rules that look at the history go through `Constraints`, row by row and
position by position.
Tested through the rounds, against greedy search with the same rules.
"""

import copy
from collections.abc import Sequence
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.drafting.protocol import DraftedRow
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.rules.constraints import Constraints, SentenceRules, check_sentence_rules
from headwise.decoding.rules.next_token import (
    MINUS_INFINITY,
    forbid_special,
    force_end,
    force_prefix,
    is_too_short,
    look_up,
)
from headwise.text.tokenizer import EOS


class BlockRules(Protocol):
    """The rules of one batch."""

    def mask(
        self,
        scores: Float[Tensor, "row step vocab"],
        rows: Sequence[DraftedRow],
        fed: Int[Tensor, "row step"],
    ) -> None:
        """Overwrite what is forbidden with -inf; `fed` holds the last token and the drafts."""
        ...

    def advance(self, row: DraftedRow, tokens: Sequence[int]) -> None:
        """The row has written these tokens."""
        ...


def make_rules(
    settings: GenerationSettings,
    rules: Sequence[SentenceRules],
    rows: Sequence[DraftedRow],
    device: torch.device,
) -> BlockRules:
    """The fastest form of the rules; rules that cannot be met are refused."""
    for one, row in zip(rules, rows, strict=True):
        check_sentence_rules(one, limit=row.limit)
    if settings.no_repeat_ngrams or any(one.rules is not None for one in rules):
        return HistoryRules(settings, rules, rows, device)
    return LengthRules(settings)


class LengthRules:
    """Special tokens, minimum length, prefix, and the end at the limit."""

    def __init__(self, settings: GenerationSettings) -> None:
        self.settings = settings

    def mask(self, scores: Tensor, rows: Sequence[DraftedRow], fed: Tensor) -> None:
        num_steps = scores.shape[1]
        flat = scores.flatten(0, 1)
        lengths = [len(row.tokens) + step + 1 for row in rows for step in range(num_steps)]
        forced = self._forced(rows, num_steps, scores.device)
        values = None if forced is None else look_up(flat, forced)
        forbid_special(flat, self.settings)
        if self.settings.min_length:
            early = [i for i, length in enumerate(lengths) if is_too_short(length, self.settings)]
            flat[early, EOS] = MINUS_INFINITY
        if forced is not None and values is not None:
            force_prefix(flat, forced, values)
        if self.settings.at_limit == "end":
            limits = [row.limit for row in rows for _ in range(num_steps)]
            is_last = [length == limit for length, limit in zip(lengths, limits, strict=True)]
            force_end(flat, torch.tensor(is_last, device=scores.device))

    def _forced(
        self, rows: Sequence[DraftedRow], num_steps: int, device: torch.device
    ) -> Tensor | None:
        """The prefix's token at every position, -1 after its end; None: no row is inside."""
        if all(len(row.tokens) >= len(row.prefix) for row in rows):
            return None
        blocks = [row.prefix[len(row.tokens) :][:num_steps] for row in rows]
        filled = [[*block, *[-1] * (num_steps - len(block))] for block in blocks]
        return torch.tensor(filled, device=device).flatten()[:, None]

    def advance(self, row: DraftedRow, tokens: Sequence[int]) -> None:
        """Nothing is remembered."""


class HistoryRules:
    """All rules, with what each row has written so far."""

    def __init__(
        self,
        settings: GenerationSettings,
        rules: Sequence[SentenceRules],
        rows: Sequence[DraftedRow],
        device: torch.device,
    ) -> None:
        self._constraints = {
            row.number: Constraints(settings, [one], limits=[row.limit], width=1, device=device)
            for one, row in zip(rules, rows, strict=True)
        }

    def mask(self, scores: Tensor, rows: Sequence[DraftedRow], fed: Tensor) -> None:
        for place, row in enumerate(rows):
            if row.is_done:
                continue
            # A copy is advanced by the drafts; its tensors are replaced and never overwritten.
            tried = copy.copy(self._constraints[row.number])
            for step in range(min(scores.shape[1], row.num_left)):
                if step:
                    tried.advance(fed[place, step : step + 1])
                tried.mask(scores[place, step : step + 1])

    def advance(self, row: DraftedRow, tokens: Sequence[int]) -> None:
        constraints = self._constraints[row.number]
        for token in tokens:
            constraints.advance(torch.tensor([token], device=constraints.device))
