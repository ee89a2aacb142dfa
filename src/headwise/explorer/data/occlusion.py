"""Occlusion: how much less probable a translation becomes when a source word is left out.

For a source x of words w_1 … w_n and its translation y,

    change_i = log p(y | x) − log p(y | x without w_i)

which is large if y depends on w_i, about 0 if w_i does not matter, and negative if y is more
probable without w_i. The same difference is computed for every piece of y. Leaving a word out is
crude, because the rest may be no sentence, but it tests the dependence that attention weights only
suggest (Li, Monroe and Jurafsky, arXiv:1612.08220).

Tested against: one forward pass for each shortened source, and a one-word sentence.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headwise.explorer.data.word_grouping import WordGroups, group_pieces
from headwise.tasks.translation.translator import Translator
from headwise.text.tokenizer import EOS

SENTENCES_AT_ONCE = 32


@dataclass(frozen=True)
class Occlusion:
    """The effect of each source word on a translation."""

    words: tuple[str, ...]
    pieces: tuple[str, ...]
    """The pieces of the translation, including its end."""
    log_probability: float
    """The log-probability of the translation given the whole source."""
    changes: NDArray[np.float64]
    """[word, piece]: how much less probable (in log) the piece becomes without the word."""

    @property
    def totals(self) -> NDArray[np.float64]:
        """How much less probable the whole translation becomes without each word."""
        return self.changes.sum(axis=1)


def occlude(
    translator: Translator,
    source: Sequence[int],
    target: Sequence[int],
    *,
    before_step: Callable[[], None] | None = None,
) -> Occlusion:
    """Leave out the words of the source, one at a time.

    `before_step` is called before every step and may stop the work by raising an exception.
    """
    generator = translator.generator(translator.recipe.decoding)
    words = group_pieces(tuple(translator.tokenizers.source.pieces(source)))
    shortened = [without_word(source, words, number) for number in range(len(words.text))]
    rows = []
    for start in range(0, len(shortened) + 1, SENTENCES_AT_ONCE):
        sources = [source, *shortened][start : start + SENTENCES_AT_ONCE]
        steps = generator.read(sources, target, before_step=before_step)
        rows.append(_log_probabilities(steps, target))
    table = np.concatenate(rows)
    pieces = (*translator.tokenizers.target.pieces(target), "</s>")
    return Occlusion(words.text, pieces, float(table[0].sum()), table[0] - table[1:])


def without_word(source: Sequence[int], words: WordGroups, number: int) -> list[int]:
    """The source without the pieces of one word."""
    return [
        token for token, word in zip(source, words.word_of_piece, strict=True) if word != number
    ]


def _log_probabilities(
    steps: Iterable[Float[Tensor, "source vocab"]], target: Sequence[int]
) -> NDArray[np.float64]:
    """[source, piece]: the log-probability of each target token and of the end."""
    pairs = zip(steps, [*target, EOS], strict=True)
    columns = [scores[:, token].double() for scores, token in pairs]
    return torch.stack(columns, dim=1).cpu().numpy()
