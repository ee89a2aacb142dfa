"""The setting `decoding.memory` of the searches over a stepper: a memory of stored neighbours takes
part in every step (neighbours/).

    decoding: {kind: greedy, memory: {store: stores/law, weight: 0.4}}

A memory belongs to a finished model. So validations during a training search without it.
Tested through greedy search, beam search and sampling.
"""

from typing import Self

from headwise.decoding.generation_settings import GenerationSettings
from headwise.neighbours.settings import MemorySettings


class RememberingSettings(GenerationSettings):
    memory: MemorySettings | None = None
    """A memory of neighbours that takes part in every step."""

    @property
    def asked_memory(self) -> MemorySettings | None:
        return self.memory

    @property
    def unaided(self) -> Self:
        return self.model_copy(update={"memory": None})
