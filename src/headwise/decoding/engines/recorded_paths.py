"""Greedy search in a room: each round takes the most probable token of every row.

Tokens and their log-probabilities are written to tables [time, sentence], in which a sentence keeps its number when it goes on
in a narrower room. Tested: equals the plain loop (`paths.py`), for fakes and for a model.
"""

from collections.abc import Hashable, Sequence

import torch

from headwise.decoding.engines.recorded import Rules, narrow_to
from headwise.decoding.results import Hypothesis
from headwise.decoding.rules.constraints import SearchSettings
from headwise.decoding.search.paths import read_paths
from headwise.decoding.stepper import BOS, EOS, Room


def search_key(settings: SearchSettings) -> Hashable:
    """What a recorded round depends on, beside the room."""
    return "greedy", Rules.key(settings)


class GreedyRounds:
    """One row per sentence; `outer` is the search in the wider room this one continues."""

    def __init__(self, room: Room, rules: Rules, *, outer: "GreedyRounds | None" = None) -> None:
        assert room.width == 1
        self.room, self.rules = room, rules
        self.limits = torch.ones(room.num_sentences, dtype=torch.long, device=room.device)
        self.tokens = torch.full_like(self.limits, BOS)
        self.ended = torch.ones_like(self.limits, dtype=torch.bool)
        self.numbers = torch.arange(room.num_sentences, device=room.device)
        self.num_alive = torch.zeros(1, dtype=torch.long, device=room.device)
        if outer is None:
            # One sentence more than there are: what filling does is written there.
            self.path = torch.zeros(
                (room.max_length, room.num_sentences + 1), dtype=torch.long, device=room.device
            )
            self.values = torch.zeros_like(self.path, dtype=torch.float32)
        else:
            self.path, self.values = outer.path, outer.values
        self.play = room.record(self._round)

    def begin(self, limits: Sequence[int]) -> None:
        """A new batch is in the room; places without a sentence have ended already."""
        padded = torch.tensor(
            [*limits, *[0] * (self.room.num_sentences - len(limits))], device=self.room.device
        )
        self.limits.copy_(padded)
        self.ended.copy_(padded == 0)
        self.tokens.fill_(BOS)
        self.path.fill_(EOS)

    def _round(self) -> None:
        room = self.room
        logits = room.step(self.tokens)
        values, tokens = self.rules.rank(logits, self.limits, time=room.time, count=1)
        here = (room.time - 1, self.numbers)
        self.path[here] = tokens[:, 0]
        self.values[here] = values[:, 0].to(self.values.dtype)
        self.tokens.copy_(tokens[:, 0])
        self.ended.logical_or_((self.limits == room.time) | (tokens[:, 0] == EOS))
        torch.sum(~self.ended, 0, keepdim=True, out=self.num_alive)

    def narrow(self) -> "GreedyRounds":
        """In a smaller room, if there is one to go to."""
        kept = torch.nonzero(~self.ended)[:, 0]
        size = narrow_to(len(kept), self.room)
        if len(kept) == 0 or size == self.room.num_sentences:
            return self
        filled = torch.cat([kept, kept[:1].expand(size - len(kept))])
        room = self.room.narrow(size, filled)
        inner = room.recall(
            search_key(self.rules.settings), lambda: GreedyRounds(room, self.rules, outer=self)
        )
        inner.limits.copy_(self.limits[filled])
        inner.tokens.copy_(self.tokens[filled])
        inner.ended.copy_(torch.arange(size, device=kept.device) >= len(kept))
        inner.numbers.fill_(self.path.shape[1] - 1)
        inner.numbers[: len(kept)] = self.numbers[kept]
        return inner

    def read(self, limits: Sequence[int]) -> list[list[Hypothesis]]:
        """The path of each sentence; waits for the device."""
        num_steps = int(self.room.time)
        tokens, values = (
            table[:num_steps, : len(limits), None].cpu() for table in (self.path, self.values)
        )
        return read_paths(tokens.numpy(), values.double().numpy(), limits=limits)
