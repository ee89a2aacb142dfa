"""Hiding words for a model to guess: which tokens, and what stands in their place (Devlin et al.
2019).

    of every 100 tokens 15 are asked for:   12 show the mask   1.5 another word   1.5 the word itself

The last two keep the model from trusting what it sees only where there is no mask, for later there
will be none. The mask's sign is </s>, which never stands inside these rows. `whole_words` asks for
all pieces of a word or none, so that none gives away the others (text/word_boundaries.py says what
a word is). Where the draw asks for nothing, one word is asked for: a batch without a question
teaches and measures nothing. What is hidden is drawn anew each time a row is seen, from its key
alone. Tested against: the shares, whole words, equal keys, rows of one word.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from headwise.data.labels.labelled_rows import RowBatch
from headwise.settings import Settings
from headwise.text.tokenizer import EOS, NUM_SPECIAL
from headwise.text.word_boundaries import WordBounds

MASK = EOS
"""The id of the mask: sequences of these models have no end of sentence, so that its id is free."""
FIRST_WORD = NUM_SPECIAL
SPARE = 1.5
"""Room for this many times the expected number of asked tokens, so that shapes stay the same."""


class MaskingSettings(Settings):
    """What is hidden."""

    rate: float = Field(default=0.15, gt=0, lt=1)
    """Share of the tokens that are asked for."""
    hidden: float = Field(default=0.8, ge=0, le=1)
    """Of these, the share that shows the mask."""
    random: float = Field(default=0.1, ge=0, le=1)
    """Of these, the share that shows another word; the rest shows itself."""
    whole_words: bool = False
    """Ask for all pieces of a word or none."""


@dataclass(frozen=True)
class MaskedBatch:
    """Rows with words hidden; `places` are the asked tokens in the rows read line by line,
    `targets` what stood there (0: none).
    """

    rows: RowBatch
    places: Tensor
    targets: Tensor


def mask_rows(
    batch: RowBatch,
    settings: MaskingSettings,
    *,
    bounds: WordBounds,
    generator: np.random.Generator,
) -> MaskedBatch:
    """Hide words of a batch, at least one where there is one; `bounds` says where words begin and
    end.
    """
    tokens = batch.tokens.numpy().ravel().copy()
    is_word = tokens >= FIRST_WORD
    room = int(len(tokens) * settings.rate * SPARE) + 8
    if settings.whole_words:
        group = bounds.number_words(tokens, is_word)
        room = max(room, batch.tokens.shape[1])  # no word is longer than a row
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
    """Which tokens are asked for: words drawn at the rate, whole ones while there is room, one at
    least.
    """
    sizes = np.bincount(group, weights=is_word).astype(np.int64)
    asked = (generator.random(len(sizes)) < rate) & (sizes > 0)
    if not asked.any() and is_word.any():
        asked[generator.choice(np.flatnonzero(sizes))] = True
    if sizes[asked].sum() > room:
        order = generator.permutation(np.flatnonzero(asked))
        asked[order[np.cumsum(sizes[order]) > room]] = False
    found: np.ndarray = asked[group] & is_word
    return found
