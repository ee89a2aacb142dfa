"""Masks tokens for BERT: chooses which tokens are predicted, and what replaces them.

Of the tokens, 15 % are chosen for prediction (Devlin et al. 2019). Of these

    80 % are replaced by the mask   10 % by a random word   10 % stay as they are

The last two are needed because no text has masks when the model is used. The mask has the id of
</s>, which does not occur inside these rows. `whole_words` chooses all pieces of a word or none, so
that no piece reveals the others (text/word_boundaries.py defines words). If no token was drawn, one
is chosen, so that every batch has something to predict. The caller passes a random generator made
from the number of the batch, so that a resumed run masks the same tokens. Tested against: the
shares, whole words, equal keys, rows of one word.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from headwise.data.labels.labelled_rows import RowBatch
from headwise.data.text.choices import MaskingSettings
from headwise.text.tokenizer import EOS, NUM_SPECIAL
from headwise.text.word_boundaries import WordBounds

MASK = EOS
"""The id of the mask: sequences of these models have no end of sentence, so that its id is free."""
FIRST_WORD = NUM_SPECIAL
SPARE = 1.5
"""Space for this many times the expected number of chosen tokens, so that shapes are static."""


@dataclass(frozen=True)
class MaskedBatch:
    """Rows with masked tokens.

    `places` are the indices of the chosen tokens in the flattened rows, `targets` the original
    tokens (0: none).
    """

    rows: RowBatch
    places: Tensor
    targets: Tensor


def count_places(settings: MaskingSettings, rows: int, row_tokens: int) -> int:
    """Space for chosen tokens in a batch: more than are expected, so that shapes are static."""
    room = int(rows * row_tokens * settings.rate * SPARE) + 8
    return max(room, row_tokens) if settings.whole_words else room  # no word is longer than a row


def mask_rows(
    batch: RowBatch,
    settings: MaskingSettings,
    *,
    bounds: WordBounds,
    generator: np.random.Generator,
) -> MaskedBatch:
    """Mask tokens of a batch, at least one if there is a word; `bounds` gives the boundaries of
    words.
    """
    tokens = batch.tokens.numpy().ravel().copy()
    is_word = tokens >= FIRST_WORD
    room = count_places(settings, *batch.tokens.shape)
    if settings.whole_words:
        group = bounds.number_words(tokens, is_word)
    else:
        group = np.arange(len(tokens))
    places = np.flatnonzero(_ask(group, is_word, settings.rate, room, generator=generator))
    targets = tokens[places]
    fate = generator.random(len(places))
    others = generator.integers(FIRST_WORD, max(len(bounds), FIRST_WORD + 1), size=len(places))
    shown = np.where(
        fate < settings.hidden,
        MASK,
        np.where(fate < settings.hidden + settings.random, others, targets),
    )
    tokens[places] = shown
    filled, wanted = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
    filled[: len(places)], wanted[: len(places)] = places, targets
    rows = replace(batch, tokens=torch.from_numpy(tokens.reshape(batch.tokens.shape)))
    return MaskedBatch(rows, torch.from_numpy(filled), torch.from_numpy(wanted))


def _ask(
    group: np.ndarray,
    is_word: np.ndarray,
    rate: float,
    room: int,
    *,
    generator: np.random.Generator,
) -> np.ndarray:
    """Choose the tokens: words drawn at the rate, whole ones while there is space, at least one."""
    sizes = np.bincount(group, weights=is_word).astype(np.int64)
    asked = (generator.random(len(sizes)) < rate) & (sizes > 0)
    if not asked.any() and is_word.any():
        asked[generator.choice(np.flatnonzero(sizes))] = True
    if sizes[asked].sum() > room:
        order = generator.permutation(np.flatnonzero(asked))
        asked[order[np.cumsum(sizes[order]) > room]] = False
    found: np.ndarray = asked[group] & is_word
    return found
