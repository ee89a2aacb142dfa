"""Settings that say how a model asks its memory: how many neighbours, and how much they count.

    memory: {store: stores/law, neighbours: 8, temperature: 10, weight: 0.4}
    memory: {store: stores/law, weight: {most: 0.8, distance: 30}}

What is left out is read from the store, where `headwise memory tune` wrote it; a store that was
never tuned has the defaults of `Mixing`.
Tested: limits, and that a store's own values fill in what is left out.
"""

from typing import Annotated

from pydantic import Field

from headwise.settings import Settings


class NearnessWeight(Settings):
    """A weight that falls with the distance d of the nearest neighbour: most · exp(-d / distance).

    It is not the trained network of adaptive kNN-MT (Zheng et al. 2021): two numbers, chosen on
    validation text.
    """

    most: float = Field(ge=0, le=1)
    """The weight of neighbours at distance 0."""
    distance: float = Field(gt=0)
    """The squared distance at which the weight has fallen to most / e."""


Weight = NearnessWeight | Annotated[float, Field(ge=0, le=1)]


class Mixing(Settings):
    """How neighbours become probabilities, every number given."""

    neighbours: int = Field(default=8, ge=1, le=4096)
    temperature: float = Field(default=10.0, gt=0)
    weight: Weight = 0.25

    @property
    def is_off(self) -> bool:
        """Whether neighbours never count, so that none need be searched."""
        most = self.weight.most if isinstance(self.weight, NearnessWeight) else self.weight
        return most == 0


class MemorySettings(Settings):
    """The memory of a model, and how it is asked."""

    store: str
    """Directory that `headwise memory build` made."""
    neighbours: int | None = Field(default=None, ge=1, le=4096)
    """Entries that are looked up for each prediction; null: as the store was tuned."""
    temperature: float | None = Field(default=None, gt=0)
    """Distances are divided by it: below 1 the nearest entry decides, a high one lets all vote
    alike; null: as the store was tuned."""
    weight: Weight | None = None
    """Share of the neighbours in the mixture, 0 to 1, or {most, distance}; null: as the store was
    tuned."""

    def fill_in(self, tuned: Mixing) -> Mixing:
        """Every number: as given here, else as the store was tuned."""
        given = {
            name: value
            for name in Mixing.model_fields
            if (value := getattr(self, name)) is not None
        }
        return tuned.model_copy(update=given)


class AskedMemory(Settings):
    """The memory under the name that a command gives it: `memory.weight`."""

    memory: MemorySettings
