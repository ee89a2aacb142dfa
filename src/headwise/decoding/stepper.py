"""`Stepper`: the interface through which a search asks a model for one token after another (start,
step, reorder). Transformers and recurrent networks have one.

A stepper holds one row per hypothesis, sentence by sentence: rows [0, width) belong to the first
sentence, the next `width` rows to the second, and so on. A search feeds one token per row, receives
log p(next token | row) for the whole vocabulary, and may rearrange the rows. It knows nothing else
of the model, so searches can be tested with a fake model that spells a given word.

    state = stepper.start(sources, width=5, max_length=40)
    log_probabilities, state = stepper.step(state, tokens)   # first: the beginning of the sentence
    state = stepper.reorder(state, index)                    # new row i continues old row index[i]

A stepper that can do more declares it by the attributes of `Capabilities`; `stepper_search.py`
chooses the engine by them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

State = TypeVar("State")


@dataclass(frozen=True)
class Capabilities:
    """What a stepper can do besides start, step and reorder, on the machine it runs on."""

    shows_attention: bool = False
    """It keeps the attention of its last step (`AttendingStepper`)."""
    has_static_buffers: bool = False
    """It can run in tensors that never move (`engines/recorded.py`)."""
    runs_continuously: bool = False
    """Sentences may enter while others are generated (`engines/continuous.py`)."""
    verifies_drafts: bool = False
    """It scores several tokens of a row at once (`drafting/protocol.py`)."""


@runtime_checkable
class Stepper(Protocol[State]):
    """A model as a search sees it; the state is opaque to searches."""

    @property
    def device(self) -> torch.device:
        """Where tokens and indices are expected and log-probabilities lie."""
        ...

    def start(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int) -> State:
        """Reserve `width` rows per sentence and at most `max_length` steps.

        Sources come without their end of sentence.
        """
        ...

    def step(
        self, state: State, tokens: Int[Tensor, "hypothesis"]
    ) -> tuple[Float[Tensor, "hypothesis vocab"], State]:
        """Feed one token per row. The search may overwrite the log-probabilities (fp32)."""
        ...

    def reorder(self, state: State, index: Int[Tensor, "new_hypothesis"]) -> State:
        """New row i continues old row index[i].

        Each group of `width` rows comes from one old sentence. If there are fewer groups than
        before, the other sentences are finished and may be forgotten.
        """
        ...


@runtime_checkable
class AttendingStepper(Protocol):
    """A stepper that also returns its attention to the source: the coverage penalty needs it."""

    def attention(self, state: object) -> Float[Tensor, "hypothesis source"]:
        """Cross-attention of the last step (mean over the heads of one layer), 0 on padding.

        Column j belongs to source token j.
        """
        ...


def capabilities_of(stepper: object) -> Capabilities:
    """What a stepper declares; one that declares nothing has the three methods only."""
    return Capabilities(
        **{one.name: getattr(stepper, one.name, False) for one in fields(Capabilities)}
    )
