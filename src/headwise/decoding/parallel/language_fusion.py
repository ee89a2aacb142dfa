"""A language model of the target language beside a parallel translator (shallow fusion).

    score(y) = log p(y | x) + language_weight · log p_language(y, </s>) + token_bonus · |y|

A parallel decoder does not see which words stand next to each other; a language model does, and it
can learn from text that nobody has translated. `ctc_beam` and `graph_beam` add its log-probability
to each prefix that they keep. Every token lowers that score, and the bonus makes up for it.

The language model is asked in the tokens of the translator. Which models can answer is decided
where models are loaded (tasks/translation/fused_language_model.py).

Hannun et al. 2014; Gulcehre et al. 2015. Tested against: the fused score of every sentence of small
cases.
"""

from collections.abc import Sequence
from typing import Protocol

from pydantic import Field

from headwise.decoding.generation_settings import GenerationSettings

Prefix = tuple[int, ...]


class PrefixModel(Protocol):
    """A language model, as a search over prefixes asks it."""

    def score_next(
        self, prefixes: Sequence[Prefix], tokens: Sequence[int]
    ) -> Sequence[Sequence[float]]:
        """log p(token | prefix): a row for each prefix, a number for each token."""
        ...


class FusedSettings(GenerationSettings):
    """A search that a language model can take part in."""

    language_model: str | None = None
    """A language model over the translator's tokens: its bundle, its run or an ARPA file."""
    language_weight: float = Field(default=0.3, gt=0, le=10)
    """Weight of the language model's log-probability beside the translator's."""
    token_bonus: float = Field(default=0.0, ge=-10, le=10)
    """Added to the score for every token; above 0 prefers longer sentences."""

    @property
    def language_model_path(self) -> str | None:
        return self.language_model

    @property
    def unaided(self) -> GenerationSettings:
        if self.language_model is None:
            return self
        return self.model_copy(update={"language_model": None, "token_bonus": 0.0})
