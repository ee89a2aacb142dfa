"""How many tokens a model writes in a step, where drafts let it write several (decoding/drafting/).

    tokens per step = tokens written / steps of the model = accepted drafts per step + 1

The end of a sentence is a token. Greedy search writes one token per step, so this is the factor by
which steps become fewer. Sums over sentences are kept, so that long sentences count for what they
are. Tested by hand and through `headwise evaluate`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from headwise.decoding.results import SearchResult


@dataclass(frozen=True)
class DraftingSpeed:
    """The sums over any number of sentences."""

    num_tokens: int
    num_steps: int

    @property
    def tokens_per_step(self) -> float:
        return self.num_tokens / self.num_steps

    @staticmethod
    def of(result: SearchResult) -> "DraftingSpeed | None":
        """Of one sentence; None if every step writes one token anyway."""
        if result.num_steps is None:
            return None
        return DraftingSpeed(len(result.best.token_log_probabilities), result.num_steps)

    @staticmethod
    def sum_of(speeds: "Iterable[DraftingSpeed | None]") -> "DraftingSpeed | None":
        """The sums of those that have numbers; None if none has."""
        known = [speed for speed in speeds if speed is not None]
        if not known:
            return None
        return DraftingSpeed(
            sum(speed.num_tokens for speed in known), sum(speed.num_steps for speed in known)
        )
