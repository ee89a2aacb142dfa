"""The plain engine: one loop over a stepper, for every search.

    feed tokens → log-probabilities → the search chooses tokens and rows → reorder the rows

A search is an object that chooses tokens, stores them and returns the hypotheses (`PlainSearch`).
Greedy search and sampling follow one path per row (`search/paths.py`); beam search keeps several
(`search/beam.py`). All sentences of a batch step together. Finished sentences are dropped when they
are a quarter of the batch, not at once, because dropping copies caches.
Tested through every search, with fakes and with models.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from headwise.decoding.generator import Watcher
from headwise.decoding.results import SearchResult
from headwise.decoding.stepper import AttendingStepper, State, Stepper
from headwise.text.tokenizer import BOS

OnResult = Callable[[int, SearchResult], None]


class PlainSearch(Protocol):
    """A search over the sentences of one batch."""

    width: int
    """Rows per sentence."""
    longest: int
    """The greatest length limit of the batch."""
    needs_attention: bool

    @property
    def done(self) -> Tensor:
        """Which of the sentences that were not dropped need no more steps."""
        ...

    def add_attention(self, attention: Tensor) -> None:
        """The attention of the step, before `choose`, if it is needed."""
        ...

    def choose(self, scores: Tensor, step: int) -> tuple[Tensor, Tensor | None]:
        """The next token of every row, and the old row it continues (None: each its own)."""
        ...

    def drop_done(
        self, tokens: Tensor, index: Tensor | None, on_result: OnResult | None
    ) -> tuple[Tensor, Tensor]:
        """Drop finished sentences; returns tokens and old rows of the others."""
        ...

    def advance(self, tokens: Tensor, index: Tensor | None) -> None:
        """The state of every row moves with it to its new row."""
        ...

    def finish(self) -> list[SearchResult]:
        """The results of all sentences, in the order of the batch."""
        ...


@torch.no_grad()
def run_plainly(
    stepper: Stepper[State],
    sources: Sequence[Sequence[int]],
    search: PlainSearch,
    watcher: Watcher,
) -> list[SearchResult]:
    """Step until every sentence is done."""
    device, every = stepper.device, steps_between_checks(stepper.device)
    state = stepper.start(sources, width=search.width, max_length=search.longest)
    num_rows = len(sources) * search.width
    tokens = torch.full((num_rows,), BOS, dtype=torch.long, device=device)
    shown = None if watcher.on_tokens is None else _ShownRows(num_rows, watcher.on_tokens)
    for step in range(search.longest):
        if watcher.before_step is not None:
            watcher.before_step()
        if shown is not None:
            shown.feed(tokens)
        scores, state = stepper.step(state, tokens)
        if search.needs_attention:
            assert isinstance(stepper, AttendingStepper)
            search.add_attention(stepper.attention(state))
        tokens, index = search.choose(scores, step)
        if step % every == 0 or step + 1 == search.longest:
            done = search.done
            num_done = int(done.sum())
            if num_done == len(done):
                break
            if num_done and pays_to_compact(num_done, len(done)):
                tokens, index = search.drop_done(tokens, index, watcher.on_result)
        search.advance(tokens, index)
        if index is not None and not _stays(index, len(scores)):
            state = stepper.reorder(state, index)
            if shown is not None:
                shown.reorder(index)
    return search.finish()


def steps_between_checks(device: torch.device) -> int:
    """How many steps to run before asking which sentences are done.

    Asking waits for the device, and a finished sentence only idles until it is asked about. On an
    accelerator waiting costs more than idling, so the question is put every fourth step there.
    Results do not depend on it.
    """
    return 1 if device.type == "cpu" else 4


def pays_to_compact(num_done: int, num_alive: int) -> bool:
    """Dropping finished sentences copies caches; it pays from a quarter of them on."""
    return 4 * num_done >= num_alive


def _stays(index: Tensor, num_rows: int) -> bool:
    """Whether every row stays where it is, so that no cache need be touched.

    Looking costs nothing on a CPU; on an accelerator it would wait for the device.
    """
    return index.device.type == "cpu" and torch.equal(
        index, torch.arange(num_rows, device=index.device)
    )


class _ShownRows:
    """The tokens of every row so far, for a watcher that is shown the first one."""

    def __init__(self, num_rows: int, show: Callable[[Sequence[int]], None]) -> None:
        self._show = show
        self._rows: list[tuple[int, ...]] = [()] * num_rows

    def feed(self, tokens: Tensor) -> None:
        self._rows = [(*row, token) for row, token in zip(self._rows, tokens.tolist(), strict=True)]
        self._show(self._rows[0][1:])

    def reorder(self, index: Tensor) -> None:
        self._rows = [self._rows[row] for row in index.tolist()]
