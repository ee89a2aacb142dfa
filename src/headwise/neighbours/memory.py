"""The memory that a model asks while it predicts: its store, the search in it, and how it counts.

    memory = TokenMemory.open("stores/law", MemorySettings(store="stores/law"))
    scores = memory.mix(scores, keys)        log-probabilities of the next token, with neighbours

`RememberingStepper` puts it between a stepper and a search (decoding/stepper.py): the search sees a
stepper like any other, and the state of each step is the key. It declares no other capability, so
the searches that record steps, draft tokens or join batches are not chosen.

Tested against: the model and brute force; greedy and beam search over a model with a memory.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from headwise.language import say
from headwise.neighbours.mixture import mix, mix_chosen
from headwise.neighbours.search import FoundNeighbours, NearestSearch
from headwise.neighbours.settings import MemorySettings
from headwise.neighbours.store import NeighbourStore

logger = logging.getLogger(__name__)


class TokenMemory:
    """A store that is asked for the next token."""

    def __init__(self, search: NearestSearch, settings: MemorySettings) -> None:
        self.search = search
        self.store = search.store
        self.mixing = settings.fill_in(self.store.header.mixing)

    @staticmethod
    def open(store: NeighbourStore, settings: MemorySettings) -> "TokenMemory":
        """The memory in a store; a note if nothing says how it should count."""
        given = (settings.neighbours, settings.temperature, settings.weight)
        if store.header.tuning is None and None in given:
            logger.warning(
                "%s",
                say(
                    f"{store.directory} was never tuned, and the right temperature differs from "
                    "model to model; run `headwise memory tune` with validation text",
                    f"{store.directory} 尚未调节，而合适的温度因模型而异；"
                    "请用验证文本运行 `headwise memory tune`",
                ),
            )
        return TokenMemory(NearestSearch(store), settings)

    def find(self, keys: Tensor) -> FoundNeighbours:
        return self.search.find(keys, self.mixing.neighbours)

    def mix(self, scores: Tensor, keys: Tensor) -> Tensor:
        """Log-probabilities of all tokens after the states `keys`."""
        return scores if self.mixing.is_off else mix(scores, self.find(keys), self.mixing)

    def mix_chosen(self, scores: Tensor, tokens: Tensor, keys: Tensor) -> Tensor:
        """The log-probability of one token after each state."""
        if self.mixing.is_off:
            return scores
        return mix_chosen(scores, tokens, self.find(keys), self.mixing)


class RememberingStepper:
    """A stepper whose log-probabilities are mixed with those of a memory."""

    def __init__(self, stepper: Any, memory: TokenMemory, last_keys: Callable[[], Tensor]) -> None:
        """`last_keys`: the states of the rows at the stepper's last step."""
        self._stepper, self._memory, self._last_keys = stepper, memory, last_keys
        self.shows_attention = getattr(stepper, "shows_attention", False)

    @property
    def device(self) -> torch.device:
        return self._stepper.device

    def start(self, sources: Sequence[Sequence[int]], *, width: int, max_length: int) -> Any:
        return self._stepper.start(sources, width=width, max_length=max_length)

    @torch.no_grad()
    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        scores, state = self._stepper.step(state, tokens)
        return self._memory.mix(scores, self._last_keys()), state

    def reorder(self, state: Any, index: Tensor) -> Any:
        return self._stepper.reorder(state, index)

    def attention(self, state: Any) -> Tensor:
        return self._stepper.attention(state)


class RememberingSteppers:
    """The steppers of a model, each with the memory."""

    output_form = "steps"

    def __init__(self, steppers: Any, memory: TokenMemory, last_keys: Callable[[], Tensor]) -> None:
        self._steppers, self._memory, self._last_keys = steppers, memory, last_keys

    def stepper(self, *, attending: bool) -> RememberingStepper:
        own = self._steppers.stepper(attending=attending)
        return RememberingStepper(own, self._memory, self._last_keys)
