"""Greedy search: at every step take the most probable token, y_t = argmax_w log p(w | y_<t, x).

The cheapest search, and a good one when the model is sure of itself; it never reconsiders, so a first token that looks
best may lead into a poor sentence (`beam.py` looks further). The score is the mean log-probability per token.
Tested on a model that spells a word, on a tree where greed fails, and against transformers' `generate`.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from headwise.decoding.engines.recorded import Rules, enter_room, run_rounds
from headwise.decoding.engines.recorded_paths import GreedyRounds, search_key
from headwise.decoding.results import SearchResult, Tell
from headwise.decoding.rules.constraints import Phrases, SearchSettings
from headwise.decoding.rules.length import limit_for
from headwise.decoding.search.paths import follow_paths
from headwise.decoding.stepper import State, Stepper


class GreedySettings(SearchSettings):
    kind: Literal["greedy"] = "greedy"


@torch.no_grad()
def search_greedily(
    stepper: Stepper[State],
    sources: Sequence[Sequence[int]],
    settings: GreedySettings,
    *,
    phrases: Sequence[Phrases],
    tell: Tell | None = None,
) -> list[SearchResult]:
    """The most probable token at every step, for each non-empty source; `phrases` holds one entry per source."""
    limits = [limit_for(settings.max_length, len(source)) for source in sources]
    room = enter_room(stepper, sources, settings, phrases=phrases, limits=limits, width=1)
    if room is not None:
        rounds = room.recall(
            search_key(settings), lambda: GreedyRounds(room, Rules(settings, room))
        )
        rounds.begin(limits)
        found = run_rounds(rounds, longest=max(limits)).read(limits)
        return [SearchResult(tuple(hypotheses)) for hypotheses in found]

    def choose(scores: Tensor, step: int, sentences: Tensor) -> Tensor:
        return scores.argmax(-1)

    paths = follow_paths(
        stepper, sources, choose, settings=settings, phrases=phrases, width=1, tell=tell
    )
    return [SearchResult(tuple(hypotheses)) for hypotheses in paths]
