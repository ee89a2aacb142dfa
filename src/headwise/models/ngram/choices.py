"""Settings of n-gram models: the order, and the smoothing that gives a probability to n-grams that
were not seen in the text.
"""

from typing import Annotated, Literal

from pydantic import Field

from headwise.settings import Settings

Form = Literal["interpolated", "backoff"]


class MaximumLikelihood(Settings):
    """Relative frequencies; unseen n-grams have probability 0."""

    kind: Literal["maximum_likelihood"] = "maximum_likelihood"


class AddK(Settings):
    """Laplace: every word is counted k times more than it was seen, after every context."""

    kind: Literal["add_k"] = "add_k"
    k: float = Field(default=1.0, gt=0.0, le=1e6)
    """What is added; 1 is add-one."""


class AbsoluteDiscounting(Settings):
    """Ney, Essen and Kneser (1994): a constant part of every count goes to the shorter context."""

    kind: Literal["absolute_discounting"] = "absolute_discounting"
    discount: float | None = Field(default=None, gt=0.0, lt=1.0)
    """The discount, subtracted from every count; null: n₁ / (n₁ + 2 n₂) of each order."""
    form: Form = "interpolated"


class KneserNey(Settings):
    """Kneser and Ney (1995): as above, with shorter contexts counted by different words."""

    kind: Literal["kneser_ney"] = "kneser_ney"
    discount: float | None = Field(default=None, gt=0.0, lt=1.0)
    """The discount, subtracted from every count; null: n₁ / (n₁ + 2 n₂) of each order."""
    form: Form = "interpolated"


class ModifiedKneserNey(Settings):
    """Chen and Goodman (1998): three discounts per order, for what was seen once, twice, more."""

    kind: Literal["modified_kneser_ney"] = "modified_kneser_ney"
    form: Form = "interpolated"


class Katz(Settings):
    """Katz (1987): counts up to `largest` are corrected by Good and Turing, the rest backs off."""

    kind: Literal["katz"] = "katz"
    largest: int = Field(default=5, ge=1, le=100)
    """Larger counts are not changed."""


class StupidBackoff(Settings):
    """Brants et al. (2007): relative frequencies, times a constant for every shorter context.

    The sum over all words is more than 1.
    """

    kind: Literal["stupid_backoff"] = "stupid_backoff"
    factor: float = Field(default=0.4, gt=0.0, lt=1.0)


SmoothingSettings = Annotated[
    MaximumLikelihood
    | AddK
    | AbsoluteDiscounting
    | KneserNey
    | ModifiedKneserNey
    | Katz
    | StupidBackoff,
    Field(discriminator="kind"),
]


class NgramSettings(Settings):
    """A word depends on the order - 1 words before it; learned by counting."""

    kind: Literal["ngram"] = "ngram"
    order: int = Field(default=5, ge=1, le=20)
    """Number of words of the longest n-gram; 1 uses no context."""
    smoothing: SmoothingSettings = ModifiedKneserNey()
    """How unseen n-grams get a probability."""
