"""Searching in a room: one round, the model's step and the search's choice together, is recorded once and replayed.

A round is a function of no arguments on tensors that stay where they are. The host only replays it and asks how many sentences
are left; it reads the answer a round later, when the device is at work on the next, so the device never waits:

    host      play 1 · ask · play 2 · ask, read answer 1 · play 3 · ask, read answer 2 · …
    device    [ round 1 ][ round 2 ][ round 3 ][ …

When at most half of the sentences are left, they go on in a narrower room. Rules that look at a row's history (phrases, n-grams,
a prefix), the coverage penalty and traces are left to the plain loops. Results do not depend on which way was taken.
Tested: rooms = plain loops, for fakes and for a model, through narrower rooms and over several batches.
"""

from collections import deque
from collections.abc import Hashable, Sequence
from typing import Protocol, Self, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.rules.constraints import Phrases, SearchSettings
from headwise.decoding.search.candidates import rank_tokens
from headwise.decoding.stepper import EOS, UNKNOWN, Room, RoomyStepper, Stepper

LAG = 1
"""Rounds between a question and the reading of its answer."""
FEW_ROWS = 64
"""With so few rows a narrower room is no faster."""


class Rounds(Protocol):
    """A search in a room."""

    room: Room
    num_alive: Int[Tensor, "1"]
    """Sentences that are not done, after the last round."""

    def play(self) -> None: ...

    def narrow(self) -> "Self":
        """The rounds in which the sentences that are left go on."""
        ...


AnyRounds = TypeVar("AnyRounds", bound=Rounds)


def enter_room(
    stepper: Stepper,
    sources: Sequence[Sequence[int]],
    settings: SearchSettings,
    *,
    phrases: Sequence[Phrases],
    width: int,
    limits: Sequence[int],
) -> Room | None:
    """A room for this search, if the stepper has one and the search needs no histories."""
    if not isinstance(stepper, RoomyStepper) or settings.no_repeat_ngrams:
        return None
    if any(wishes.rules is not None or wishes.prefix for wishes in phrases):
        return None
    return stepper.enter(sources, width=width, max_length=max(limits))


def run_rounds(rounds: AnyRounds, *, longest: int) -> AnyRounds:
    """Play until all sentences are done or `longest` rounds were played; returns the rounds of the last room."""
    answers = LateAnswers(rounds.room.device)
    for _ in range(longest):
        rounds.play()
        num_alive = answers.ask(rounds.num_alive)
        if num_alive == 0:
            break
        room = rounds.room
        if (
            num_alive
            and 2 * num_alive <= room.num_sentences
            and room.num_sentences * room.width > FEW_ROWS
        ):
            rounds = rounds.narrow()
    return rounds


def narrow_to(num_alive: int, room: Room) -> int:
    """How many sentences the narrower room has: halves, so that few rooms are made, and rows enough to be worth it."""
    size = room.num_sentences
    while size % 2 == 0 and size // 2 >= num_alive and size * room.width > FEW_ROWS:
        size //= 2
    return size


class LateAnswers:
    """Numbers from a device, read some questions later; from a CPU, at once."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._asked: deque[tuple[Tensor, torch.cuda.Event]] = deque()

    def ask(self, number: Int[Tensor, "1"]) -> int | None:
        if self._device.type == "cpu":
            return int(number)
        copy = torch.empty(1, dtype=number.dtype, pin_memory=True).copy_(number, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        self._asked.append((copy, event))
        if len(self._asked) <= LAG:
            return None
        earlier, there = self._asked.popleft()
        there.synchronize()
        return int(earlier)


class Rules:
    """The rules of `constraints.py` that need no history: special tokens, the minimum length, what happens at the limit."""

    def __init__(self, settings: SearchSettings, room: Room) -> None:
        self.settings = settings
        self.banned = torch.zeros(room.vocab, dtype=torch.bool, device=room.device)
        self.banned[:EOS] = True
        if not settings.allow_unknown:
            self.banned[UNKNOWN] = True

    @staticmethod
    def key(settings: SearchSettings) -> Hashable:
        """What of these rules a recording depends on."""
        return settings.allow_unknown, settings.min_length, settings.at_limit

    def rank(
        self,
        logits: Float[Tensor, "row vocab"],
        limits: Int[Tensor, "sentence"],
        *,
        time: Int[Tensor, "1"],
        count: int,
    ) -> tuple[Float[Tensor, "row best"], Int[Tensor, "row best"]]:
        """The best tokens of each row; `time` counts this step, too."""
        if self.settings.min_length:
            self.banned[EOS : EOS + 1].copy_(time <= self.settings.min_length)
        values, tokens = rank_tokens(logits, self.banned, count=count)
        if self.settings.at_limit == "end":
            at_limit = (limits == time)[:, None].expand(-1, len(values) // len(limits)).reshape(-1)
            first = torch.arange(count, device=values.device) == 0
            forced = torch.zeros_like(values).masked_fill(~first, -torch.inf)
            values = torch.where(at_limit[:, None], forced, values)
            tokens = tokens.masked_fill(at_limit[:, None] & first, EOS)
        return values, tokens
