"""Hiding words for a model to guess: which tokens, and what stands in their place (Devlin et al. 2019).

    of every 100 tokens 15 are asked for:   12 show the mask   1.5 another word   1.5 the word itself

The last two keep the model from trusting what it sees only where there is no mask, for later there will be none. The mask's sign
is </s>, which never stands inside these rows. `whole_words` asks for all pieces of a word or none, so that none gives away the others.
What is hidden is drawn anew each time a row is seen, from its key alone. Tested against: the shares, whole words, equal keys.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from headwise.data.labelled_rows import RowBatch
from headwise.settings import Settings

MASK = 2
FIRST_WORD = 4
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
    """Rows with words hidden; `places` are the asked tokens in the rows read line by line, `targets` what stood there (0: none)."""

    rows: RowBatch
    places: Tensor
    targets: Tensor


def mask_rows(
    batch: RowBatch,
    settings: MaskingSettings,
    *,
    starts_word: np.ndarray,
    generator: np.random.Generator,
) -> MaskedBatch:
    """Hide words of a batch; `starts_word` says of each entry of the vocabulary whether a word begins with it."""
    tokens = batch.tokens.numpy().ravel().copy()
    words = tokens >= FIRST_WORD
    group = np.cumsum(starts_word[tokens] | ~words) if settings.whole_words else np.arange(len(tokens))
    asked = (generator.random(int(group[-1]) + 1)[group] < settings.rate) & words
    room = int(len(tokens) * settings.rate * SPARE) + 8
    places = np.flatnonzero(asked)
    if len(places) > room:
        places = np.sort(generator.permutation(places)[:room])
    targets = tokens[places]
    fate = generator.random(len(places))
    others = generator.integers(FIRST_WORD, max(len(starts_word), FIRST_WORD + 1), size=len(places))
    shown = np.where(fate < settings.hidden, MASK, np.where(fate < settings.hidden + settings.random, others, targets))
    tokens[places] = shown
    filled, wanted = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
    filled[: len(places)], wanted[: len(places)] = places, targets
    rows = replace(batch, tokens=torch.from_numpy(tokens.reshape(batch.tokens.shape)))
    return MaskedBatch(rows, torch.from_numpy(filled), torch.from_numpy(wanted))
