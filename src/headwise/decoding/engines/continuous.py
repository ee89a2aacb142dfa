"""The continuous engine: sentences enter while others are generated, and leave when done.

An ordinary batch takes as long as its longest sentence, and a sentence that arrives late waits for
the whole batch. Here every row has its own beginning. Before each step the engine calls `more` for
new sentences, which take the rows of finished ones (`ContinuousRows`). A sentence that has its
end-of-sentence token is reported at once. This is continuous batching, or iteration-level
scheduling (Yu et al. 2022, Orca).

Only greedy search without phrases and n-gram rules runs here, because rules about the history of a
row need the plain engine. The other rules are those of `rules/next_token.py`, with a length per
row.
Tested against the plain engine, each sentence alone, whatever others come and leave meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.engines.plain import pays_to_compact
from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.generator import Arrival, NextArrivals
from headwise.decoding.results import Hypothesis, SearchResult
from headwise.decoding.rules.constraints import SentenceRules, check_sentence_rules
from headwise.decoding.rules.length_limit import limit_for
from headwise.decoding.rules.next_token import (
    MINUS_INFINITY,
    forbid_special,
    force_end,
    force_prefix,
    is_too_short,
    look_up,
)
from headwise.text.tokenizer import BOS, EOS


class ContinuousRows(Protocol):
    """A decoder whose rows, one per sentence, each have their own beginning."""

    def arrange(self, kept: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        """Keep the rows `kept`, in this order, and add one for each new source; drop the others."""
        ...

    def replace(self, places: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        """Put new sentences into the rows of finished ones."""
        ...

    def forget(self, row: int) -> None:
        """This sentence is done; its row is padding from now on."""
        ...

    def step(self, tokens: Int[Tensor, "row"]) -> Float[Tensor, "row vocab"]:
        """Feed one token per row, the beginning of the sentence to new ones.

        The search may overwrite the log-probabilities.
        """
        ...


class ContinuousStepper(Protocol):
    """A stepper that has such rows."""

    def make_continuous(self) -> ContinuousRows:
        """Rows of the same model, without any sentence yet."""
        ...


def looks_back(settings: GenerationSettings) -> bool:
    """Whether the next token depends on the history of a row, besides the model's step."""
    return bool(settings.forbidden or settings.required or settings.no_repeat_ngrams)


@dataclass
class _Row:
    arrival: Arrival
    limit: int
    tokens: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    is_done: bool = False

    @property
    def num_left(self) -> int:
        return self.limit - len(self.tokens)

    @property
    def forced(self) -> int:
        """The prefix's token at this position; -1 if there is none."""
        prefix, position = self.arrival.prefix, len(self.tokens)
        return prefix[position] if position < len(prefix) else -1

    def take(self, token: int, value: float) -> None:
        self.tokens.append(token)
        self.values.append(value)
        if token == EOS or self.num_left == 0:
            self.is_done = True
            found = Hypothesis.of_path(self.tokens, self.values)
            self.arrival.on_result(SearchResult((found,)))


@torch.no_grad()
def run_continuously(
    decoder: ContinuousRows,
    first: Sequence[Arrival],
    settings: GenerationSettings,
    more: NextArrivals,
) -> None:
    """Greedy search for all arrivals, until all are done or nobody waits any more."""
    rows: list[_Row] = []
    tokens = torch.empty(0, dtype=torch.long)
    coming = first
    while True:
        kept = [
            number
            for number, row in enumerate(rows)
            if not row.is_done and not row.arrival.is_over()
        ]
        if not kept and not coming:
            return
        new = [_enter(one, settings) for one in coming]
        rows, tokens = _place(decoder, rows, kept, new, tokens)
        tokens, values = _choose(decoder.step(tokens), rows, settings)
        for number, (token, value) in enumerate(zip(tokens.tolist(), values.tolist(), strict=True)):
            row = rows[number]
            if not row.is_done:
                row.take(token, value)
                if row.is_done:
                    decoder.forget(number)
        coming = more(sum(not row.is_done for row in rows))


def _place(
    decoder: ContinuousRows, rows: list[_Row], kept: Sequence[int], new: list[_Row], tokens: Tensor
) -> tuple[list[_Row], Tensor]:
    """Put new sentences into free rows; rearrange all rows if too few or too many are free."""
    sources = [row.arrival.source for row in new]
    free = sorted(set(range(len(rows))) - set(kept))
    num_left = len(free) - len(new)
    if num_left < 0 or (num_left and pays_to_compact(num_left, len(rows))):
        decoder.arrange(kept, sources)
        return [*(rows[number] for number in kept), *new], torch.cat(
            [tokens[kept], tokens.new_full((len(new),), BOS)]
        )
    places = free[: len(new)]
    if new:
        decoder.replace(places, sources)
        tokens[places] = BOS
        for place, row in zip(places, new, strict=True):
            rows[place] = row
    return rows, tokens


def _enter(arrival: Arrival, settings: GenerationSettings) -> _Row:
    limit = limit_for(settings.max_length, len(arrival.source))
    check_sentence_rules(SentenceRules(prefix=arrival.prefix), limit=limit)
    return _Row(arrival, limit)


def _choose(
    scores: Tensor, rows: Sequence[_Row], settings: GenerationSettings
) -> tuple[Tensor, Tensor]:
    """The most probable permitted token of each row and its log-probability."""
    numbers = [row.forced for row in rows]
    forced = torch.tensor(numbers)[:, None] if max(numbers) >= 0 else None
    forced_values = None if forced is None else look_up(scores, forced)
    forbid_special(scores, settings)
    if settings.min_length:
        lengths = [len(row.tokens) + 1 for row in rows]
        early = [row for row, length in enumerate(lengths) if is_too_short(length, settings)]
        scores[early, EOS] = MINUS_INFINITY
    if forced is not None and forced_values is not None:
        force_prefix(scores, forced, forced_values)
    is_last = [row.num_left == 1 for row in rows]
    if settings.at_limit == "end" and any(is_last):
        force_end(scores, torch.tensor(is_last))
    values, tokens = scores.max(-1)
    return tokens, values
