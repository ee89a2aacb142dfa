"""`training.segmentation`: how the sentences of a training are cut into pieces, where that is not
the best way each time.

The tokenizer and the prepared data stay as they are: validation, test and translation use the best
segmentation, and runs that differ only in this word share their data.
"""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from headwise.errors import SettingsError
from headwise.settings import Settings

if TYPE_CHECKING:
    from headwise.text.choices import TextSettings

Sides = Literal["both", "source", "target"]


class BpeDropout(Settings):
    """Merges of byte pair encoding are left out at random (Provilkov et al. 2020)."""

    kind: Literal["bpe_dropout"] = "bpe_dropout"
    probability: float = Field(default=0.1, gt=0.0, le=1.0)
    """Of each merge to be left out; 1: characters."""
    sides: Sides = "both"
    """Whose sentences are cut so."""

    @property
    def in_words(self) -> str:
        """For the card of a model, and for `headwise describe`."""
        return f"{self.kind} (probability={self.probability:g}, sides={self.sides})"


class UnigramSampling(Settings):
    """Segmentations are drawn by their probability under the unigram model (Kudo 2018)."""

    kind: Literal["unigram_sampling"] = "unigram_sampling"
    alpha: float = Field(default=0.2, ge=0.0, le=100.0)
    """Exponent of the probabilities: 0 makes all segmentations alike, a large number leaves the
    best."""
    sides: Sides = "both"
    """Whose sentences are cut so."""

    @property
    def in_words(self) -> str:
        """For the card of a model, and for `headwise describe`."""
        return f"{self.kind} (alpha={self.alpha:g}, sides={self.sides})"


Segmentation = Annotated[BpeDropout | UnigramSampling, Field(discriminator="kind")]
ALGORITHMS = {"bpe_dropout": "bpe", "unigram_sampling": "unigram"}


def check_segmentation(segmentation: BpeDropout | UnigramSampling, text: "TextSettings") -> None:
    """Refuse a tokenizer that has no merges to leave out, or no probabilities to draw by."""
    # Not above: a mistake in a recipe is answered before the tokenizers are loaded.
    from headwise.text.choices import SentencePieceSettings

    needed = ALGORITHMS[segmentation.kind]
    if isinstance(text, SentencePieceSettings):
        if text.algorithm == needed:
            return
        fits = next(kind for kind, name in ALGORITHMS.items() if name == text.algorithm)
        raise SettingsError(
            f"training.segmentation.kind={segmentation.kind} needs text.algorithm={needed}, which "
            f"is {text.algorithm}; set training.segmentation.kind={fits}",
            f"training.segmentation.kind={segmentation.kind} 要求 text.algorithm={needed}，"
            f"而此处为 {text.algorithm}；请设 training.segmentation.kind={fits}",
        )
    raise SettingsError(
        f"training.segmentation.kind={segmentation.kind} cuts words into other pieces, and "
        f"text.kind={text.kind} has none to choose from; set text.kind=sentencepiece and "
        f"text.algorithm={needed}, or leave training.segmentation out",
        f"training.segmentation.kind={segmentation.kind} 会把词切成别的词元，而 "
        f"text.kind={text.kind} 没有可选的切法；请设 text.kind=sentencepiece 与 "
        f"text.algorithm={needed}，或去掉 training.segmentation",
    )
