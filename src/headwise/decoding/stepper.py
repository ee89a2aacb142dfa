"""What a search needs of a model: start, step, reorder. Transformers, RNNs and language models all are steppers.

A stepper holds one row per hypothesis, sentence-major: rows [0, width) belong to the first sentence, the next `width`
to the second, and so on. A search feeds one token per row, gets log p(next token | row) for the whole vocabulary and
may rearrange the rows; it knows nothing else of the model, so it is tested with fakes that must spell a word.

    state = stepper.start(sources, width=5, max_length=40)
    log_probabilities, state = stepper.step(state, tokens)        # tokens: the beginning of the sentence at first
    state = stepper.reorder(state, index)                         # new row i continues old row index[i]

That is all a search must know, and what every search is written for. Where starting an operation costs more than the operation
(a GPU), a stepper may also offer a `Room`: the same three acts on tensors that stay where they are, so that a whole round, the
model's step and the search's choice together, can be recorded once and replayed (`rounds.py`).
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

PAD, BOS, EOS, UNKNOWN = 0, 1, 2, 3
NUM_SPECIAL = 4

State = TypeVar("State")


@runtime_checkable
class Stepper(Protocol[State]):
    """A model as a search sees it; the state is opaque to searches."""

    @property
    def device(self) -> torch.device:
        """Where tokens and indices are expected and log-probabilities lie."""
        ...

    def start(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int) -> State:
        """Room for `width` rows per sentence and at most `max_length` steps; sources come without end of sentence."""
        ...

    def step(
        self, state: State, tokens: Int[Tensor, "hypothesis"]
    ) -> tuple[Float[Tensor, "hypothesis vocab"], State]:
        """Feed one token per row. The log-probabilities (fp32) are the search's to overwrite."""
        ...

    def reorder(self, state: State, index: Int[Tensor, "new_hypothesis"]) -> State:
        """New row i continues old row index[i]. Groups of `width` rows come from one old sentence each; fewer groups
        than before mean that the other sentences are finished and may be forgotten."""
        ...


@runtime_checkable
class AttendingStepper(Protocol):
    """A stepper that can also say where it looked: what the coverage penalty needs."""

    def attention(self, state: object) -> Float[Tensor, "hypothesis source"]:
        """Cross-attention of the last step (mean over the heads of one layer), 0 on padding; column j is source token j."""
        ...


class Flow(Protocol):
    """Rows that each have their own beginning, one a sentence: `flow.py`."""

    def arrange(self, kept: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        """The rows `kept`, in this order, and after them one for each new source; the others are left out."""
        ...

    def replace(self, places: Sequence[int], sources: Sequence[Sequence[int]]) -> None:
        """New sentences in the places of others, which are done."""
        ...

    def forget(self, row: int) -> None:
        """This sentence is done; its row is filling from now on."""
        ...

    def step(self, tokens: Int[Tensor, "row"]) -> Float[Tensor, "row vocab"]:
        """Feed one token per row, the beginning of the sentence to new ones; log-probabilities, the search's to overwrite."""
        ...


Thing = TypeVar("Thing")


class Room(Protocol):
    """A batch in fixed tensors: no shape and no decision of the host depends on the step. Rows are those of a `Stepper`."""

    @property
    def device(self) -> torch.device: ...

    num_sentences: int
    """Places for sentences; those that no source was given for are filling."""
    width: int
    max_length: int
    vocab: int
    time: Int[Tensor, "1"]
    """How many steps were made: a tensor, for it is read by recorded operations."""

    def step(self, tokens: Int[Tensor, "row"]) -> Float[Tensor, "row vocab"]:
        """Feed one token per row; returns logits (not normalised), to be read before the next step."""
        ...

    def follow(self, index: Int[Tensor, "row"]) -> None:
        """Row i continues row index[i], of the same sentence."""
        ...

    def narrow(self, num_sentences: int, index: Int[Tensor, "new_row"]) -> "Room":
        """The rows index[i] go on in a smaller room; this one is over until it is entered again."""
        ...

    def recall(self, key: Hashable, make: Callable[[], Thing]) -> Thing:
        """What a search keeps with this room: made once, and found again with the next batch."""
        ...

    def record(self, function: Callable[[], None]) -> Callable[[], None]:
        """The same function of no arguments, cheaper to call again and again."""
        ...


@runtime_checkable
class RoomyStepper(Protocol):
    """A stepper that has rooms."""

    def enter(
        self, sources: Sequence[Sequence[int]], *, width: int, max_length: int
    ) -> Room | None:
        """A room with these sources in it, or None where the plain way is the better one."""
        ...


def steps_between_checks(device: torch.device) -> int:
    """How many steps to run before asking which sentences are done.

    Asking waits for the device. A finished sentence only idles until it is asked about, so on an accelerator, where
    waiting costs more than idling, the question is put every fourth step. Results do not depend on it.
    """
    return 1 if device.type == "cpu" else 4


def pays_to_compact(num_done: int, num_alive: int) -> bool:
    """Dropping finished sentences copies caches; it pays from a quarter of them on."""
    return 4 * num_done >= num_alive
