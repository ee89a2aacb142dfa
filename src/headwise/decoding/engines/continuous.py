"""Greedy search as a stream: sentences enter while others are under way, and leave as soon as they are done.

A batch is as slow as its longest sentence, and whoever comes a moment late waits for all of it. Here every row has its own beginning:
before each step `more` is asked who has come; they take the places of those who are done (`stepping.Flow`), and whoever has taken its
end of sentence is told of at once. With enough who come, no step is ever made with few rows. (Yu et al. 2022, Orca: "iteration-level
scheduling".)

Only for searches that look at nothing but the last step: no forbidden or required phrases, no n-grams.
Tested against: `greedy.py`, each sentence alone, whoever else comes and leaves meanwhile.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from headwise.decoding.results import Hypothesis, SearchResult
from headwise.decoding.rules.constraints import MINUS_INFINITY, Phrases, check_phrases
from headwise.decoding.rules.length import limit_for
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.stepper import BOS, EOS, UNKNOWN, Flow, pays_to_compact


@dataclass(frozen=True)
class Arrival:
    """A sentence that comes, whom to tell, and whether they still wait."""

    source: Sequence[int]
    tell: Callable[[SearchResult], None]
    prefix: tuple[int, ...] = ()
    is_over: Callable[[], bool] = lambda: False


More = Callable[[int], Sequence[Arrival]]
"""Those who come now, if it is worth their while, given how many rows are under way."""


def can_flow(settings: object) -> bool:
    """Whether the next token depends on nothing but the model's step."""
    if not isinstance(settings, GreedySettings):
        return False
    return not (settings.forbidden or settings.required or settings.no_repeat_ngrams)


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

    def take(self, token: int, value: float) -> None:
        self.tokens.append(token)
        self.values.append(value)
        if token == EOS or self.num_left == 0:
            self.is_done = True
            self.arrival.tell(SearchResult((self._hypothesis(),)))

    def _hypothesis(self) -> Hypothesis:
        finished, total = self.tokens[-1] == EOS, sum(self.values)
        tokens = self.tokens[:-1] if finished else self.tokens
        return Hypothesis(
            tuple(tokens), total, total / len(self.values), tuple(self.values), finished
        )


@torch.no_grad()
def flow_greedily(
    flow: Flow, first: Sequence[Arrival], settings: GreedySettings, *, more: More
) -> None:
    """Search for those who come, until all are done or nobody waits any more."""
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
        rows, tokens = _seat(flow, rows, kept, [_enter(one, settings) for one in coming], tokens)
        tokens, values = _choose(flow.step(tokens), rows, settings)
        for number, (token, value) in enumerate(zip(tokens.tolist(), values.tolist(), strict=True)):
            row = rows[number]
            if not row.is_done:
                row.take(token, value)
                if row.is_done:
                    flow.forget(number)
        coming = more(sum(not row.is_done for row in rows))


def _seat(
    flow: Flow, rows: list[_Row], kept: Sequence[int], new: list[_Row], tokens: Tensor
) -> tuple[list[_Row], Tensor]:
    """Newcomers in the places of those who are done; all closer together where too many places are empty or too few."""
    sources = [row.arrival.source for row in new]
    free = sorted(set(range(len(rows))) - set(kept))
    num_left = len(free) - len(new)
    if num_left < 0 or (num_left and pays_to_compact(num_left, len(rows))):
        flow.arrange(kept, sources)
        return [*(rows[number] for number in kept), *new], torch.cat(
            [tokens[kept], tokens.new_full((len(new),), BOS)]
        )
    places = free[: len(new)]
    if new:
        flow.replace(places, sources)
        tokens[places] = BOS
        for place, row in zip(places, new, strict=True):
            rows[place] = row
    return rows, tokens


def _enter(arrival: Arrival, settings: GreedySettings) -> _Row:
    limit = limit_for(settings.max_length, len(arrival.source))
    check_phrases(Phrases(prefix=arrival.prefix), limit=limit)
    return _Row(arrival, limit)


def _choose(
    scores: Tensor, rows: Sequence[_Row], settings: GreedySettings
) -> tuple[Tensor, Tensor]:
    """The token of each row and its log-probability; the rules are those of `constraints.py`."""
    forced = {
        number: row.arrival.prefix[len(row.tokens)]
        for number, row in enumerate(rows)
        if len(row.tokens) < len(row.arrival.prefix)
    }
    told = {number: float(scores[number, token]) for number, token in forced.items()}
    scores[:, :EOS] = MINUS_INFINITY
    if not settings.allow_unknown:
        scores[:, UNKNOWN] = MINUS_INFINITY
    if settings.min_length:
        early = [number for number, row in enumerate(rows) if len(row.tokens) < settings.min_length]
        scores[early, EOS] = MINUS_INFINITY
    values, tokens = scores.max(-1)
    if settings.at_limit == "end":
        for number, row in enumerate(rows):
            if row.num_left == 1:
                forced[number], told[number] = EOS, 0.0
    for number, token in forced.items():
        tokens[number], values[number] = token, told[number]
    return tokens, values
