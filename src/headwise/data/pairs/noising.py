"""Adds noise to the words of a sentence, as to the synthetic sources of back-translation.

    1. each word is left out with probability 0.1
    2. each of the others is replaced by a filler with probability 0.1
    3. the words are shuffled, so that none moves further than 3 places: word i is sorted by i + u,
       with u uniform in [0, 4)

(Edunov et al. 2018; the shuffle is that of Lample et al. 2018.) A translator that learns from noisy
sources leans less on their exact words, which a machine chose. In a text without spaces the
characters are taken for words.

Tested by laws: how far words move, what share is left out and replaced, equal keys.
"""

import numpy as np

DROPPED, REPLACED, FURTHEST = 0.1, 0.1, 3
FILLER = "<blank>"


def add_noise(text: str, generator: np.random.Generator) -> str:
    """The sentence with noise; at least one word remains."""
    gap = " " if " " in text else ""
    words = text.split() if gap else list(text)
    if not words:
        return text
    is_kept = generator.random(len(words)) >= DROPPED
    if not is_kept.any():
        is_kept[0] = True
    kept = [word for word, keep in zip(words, is_kept, strict=True) if keep]
    is_replaced = generator.random(len(kept)) < REPLACED
    order = np.argsort(np.arange(len(kept)) + (FURTHEST + 1) * generator.random(len(kept)))
    return gap.join(FILLER if is_replaced[i] else kept[i] for i in order)
