"""The recorded engine: one step of model and search is recorded as a CUDA graph and replayed.

On a GPU, starting an operation costs more than the operation. Here a step is a function without
arguments on tensors that never move (`StaticBuffers`), so that it can be recorded once and
replayed. The host only replays it and asks how many sentences are left. It reads the answer one
step later, when the device is at work on the next step, so the device never waits:

    host      play 1 · ask · play 2 · ask, read answer 1 · play 3 · ask, read answer 2 · …
    device    [ step 1 ][ step 2 ][ step 3 ][ …

When at most half of the sentences are left, they continue in smaller buffers. Rules that look at a
row's history (phrases, n-grams, a prefix), the coverage penalty and traces are left to the plain
engine. Results do not depend on the engine.
Tested: equals the plain engine, for fakes and for a model, through smaller buffers and several
batches.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, Self, TypeVar, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headwise.decoding.generation_settings import GenerationSettings
from headwise.decoding.results import Hypothesis
from headwise.decoding.rules.next_token import MINUS_INFINITY, forbid_special, is_too_short
from headwise.decoding.search.candidates import rank_tokens
from headwise.text.tokenizer import BOS, EOS

LAG = 1
"""Steps between a question and the reading of its answer."""
FEW_ROWS = 64
"""With this many rows or fewer, smaller buffers are no faster."""

Kept = TypeVar("Kept")
Search = TypeVar("Search", bound="RecordedSearch")


class StaticBuffers(Protocol):
    """A batch in tensors that never move: no shape and no decision of the host depends on the step.

    Rows are those of a `Stepper`.
    """

    @property
    def device(self) -> torch.device: ...

    num_sentences: int
    """Places for sentences; those without a source are padding."""
    width: int
    max_length: int
    vocab: int
    time: Int[Tensor, "1"]
    """How many steps were made; a tensor, because recorded operations read it."""

    def step(self, tokens: Int[Tensor, "row"]) -> Float[Tensor, "row vocab"]:
        """Feed one token per row; logits (not normalised), to be read before the next step."""
        ...

    def follow(self, index: Int[Tensor, "row"]) -> None:
        """Row i continues row index[i], of the same sentence."""
        ...

    def narrow(self, num_sentences: int, index: Int[Tensor, "new_row"]) -> "StaticBuffers":
        """The rows index[i] continue in smaller buffers; these ones wait for the next batch."""
        ...

    def recall(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """What a search keeps with these buffers: made once, found again in the next batch."""
        ...

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        """The same function of no arguments, cheaper to call again and again."""
        ...


class StaticStepper(Protocol):
    """A stepper that has static buffers."""

    def fill_buffers(
        self, sources: Sequence[Sequence[int]], *, width: int, max_length: int
    ) -> StaticBuffers:
        """Buffers of a suitable size with these sources in them."""
        ...


class RecordedSearch(ABC):
    """A search in static buffers: the tensors of the search, and the step that updates them.

    Tables of results have one column per sentence and one more, to which padding writes. A sentence
    keeps its column (`numbers`) when it continues in smaller buffers.
    """

    def __init__(self, buffers: StaticBuffers, rules: "RecordedRules") -> None:
        self.buffers, self.rules = buffers, rules
        count, device = buffers.num_sentences, buffers.device
        self.tokens = torch.full((count * buffers.width,), BOS, dtype=torch.long, device=device)
        self.numbers = torch.arange(count, device=device)
        self.num_alive = torch.zeros(1, dtype=torch.long, device=device)
        """Sentences that are not done, after the last step."""
        self.play = buffers.record(self.play_plainly)

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """What a recorded step depends on, besides the buffers."""

    @property
    @abstractmethod
    def done(self) -> Tensor: ...

    @property
    @abstractmethod
    def padding_number(self) -> int:
        """The column of the tables to which padding writes."""

    @abstractmethod
    def play_plainly(self) -> None:
        """One step of the model and of the search."""

    @abstractmethod
    def begin(self, limits: Sequence[int]) -> None:
        """A new batch is in the buffers; places without a sentence are done already."""

    @abstractmethod
    def read(self, limits: Sequence[int]) -> list[tuple[Hypothesis, ...]]:
        """The hypotheses of each sentence; waits for the device."""

    @abstractmethod
    def inside(self, buffers: StaticBuffers) -> Self:
        """The same search in smaller buffers, with the tables of this one."""

    @abstractmethod
    def hand_over(self, inner: Self, sentences: Tensor, num_kept: int) -> None:
        """Copy what was found of these sentences; those after `num_kept` are padding and done."""

    @abstractmethod
    def store(self) -> None:
        """Write what belongs to a sentence under its number, before it may be left behind."""

    def padded(self, limits: Sequence[int]) -> Tensor:
        """The limits, and 0 for places without a sentence."""
        missing = self.buffers.num_sentences - len(limits)
        return torch.tensor([*limits, *[0] * missing], device=self.buffers.device)

    def narrow(self) -> Self:
        """The search in which the sentences that are left continue; itself if none is smaller."""
        self.store()
        kept = torch.nonzero(~self.done)[:, 0]
        size = narrow_to(len(kept), self.buffers)
        if len(kept) == 0 or size == self.buffers.num_sentences:
            return self
        # Places that are left over repeat the first sentence and write to the column of padding.
        filled = torch.cat([kept, kept[:1].expand(size - len(kept))])
        width = self.buffers.width
        rows = (filled[:, None] * width + torch.arange(width, device=kept.device)).view(-1)
        buffers = self.buffers.narrow(size, rows)
        inner = buffers.recall(self.key, lambda: self.inside(buffers))
        self.hand_over(inner, filled, len(kept))
        inner.numbers.fill_(self.padding_number)
        inner.numbers[: len(kept)] = self.numbers[kept]
        inner.tokens.copy_(self.tokens[rows])
        return inner


def run_recorded(search: RecordedSearch, limits: Sequence[int]) -> list[tuple[Hypothesis, ...]]:
    """The hypotheses of a search whose sources are in the buffers."""
    return play_to_end(search, limits).read(limits)


@torch.no_grad()
def play_to_end(search: Search, limits: Sequence[int]) -> Search:
    """Play until all sentences are done, or as many steps as the longest limit.

    The search in which the last of them ended, perhaps in smaller buffers, has all results.
    """
    search.begin(limits)
    answers = LateAnswers(search.buffers.device)
    for _ in range(max(limits)):
        search.play()
        num_alive = answers.ask(search.num_alive)
        if num_alive == 0:
            break
        buffers = search.buffers
        is_half_empty = num_alive and 2 * num_alive <= buffers.num_sentences
        if is_half_empty and buffers.num_sentences * buffers.width > FEW_ROWS:
            search = search.narrow()
    return search


def narrow_to(num_alive: int, buffers: StaticBuffers) -> int:
    """How many sentences smaller buffers have: halves, so that few are made, and rows enough."""
    size = buffers.num_sentences
    while size % 2 == 0 and size // 2 >= num_alive and size * buffers.width > FEW_ROWS:
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


class RecordedRules:
    """The rules of `rules/next_token.py` for a recorded step, whose length is a tensor."""

    def __init__(self, settings: GenerationSettings, buffers: StaticBuffers) -> None:
        self.settings = settings
        scores = torch.zeros(buffers.vocab, device=buffers.device)
        forbid_special(scores, settings)
        self.banned = scores == MINUS_INFINITY

    @staticmethod
    def key(settings: GenerationSettings) -> Hashable:
        """What of these rules a recording depends on."""
        return settings.allow_unknown, settings.min_length, settings.at_limit

    def banned_at(self, time: Int[Tensor, "1"]) -> Bool[Tensor, "vocab"]:
        """What may not be the token number `time` of any row."""
        if self.settings.min_length:
            is_early = cast("Tensor", is_too_short(time, self.settings))
            self.banned[EOS : EOS + 1].copy_(is_early)
        return self.banned

    def rank(
        self,
        logits: Float[Tensor, "row vocab"],
        limits: Int[Tensor, "sentence"],
        *,
        time: Int[Tensor, "1"],
        count: int,
    ) -> tuple[Float[Tensor, "row best"], Int[Tensor, "row best"]]:
        """The best tokens of each row; `time` counts this step, too."""
        values, tokens = rank_tokens(logits, self.banned_at(time), count=count)
        if self.settings.at_limit == "end":
            at_limit = (limits == time)[:, None].expand(-1, len(values) // len(limits)).reshape(-1)
            first = torch.arange(count, device=values.device) == 0
            forced = torch.zeros_like(values).masked_fill(~first, -torch.inf)
            values = torch.where(at_limit[:, None], forced, values)
            tokens = tokens.masked_fill(at_limit[:, None] & first, EOS)
        return values, tokens
