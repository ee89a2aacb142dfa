"""Small texts of numbers, drawn with a key."""

import numpy as np

from headwise.randomness import numpy_generator
from headwise.text.tokenizer import NUM_SPECIAL

SIZE = 23


def draw_sentences(num_sentences: int = 61, *, key: str = "text") -> list[list[int]]:
    """Zipf-like words, so that some n-grams repeat and many do not; one sentence is empty."""
    generator = numpy_generator(7, key)
    words = (
        np.minimum(generator.zipf(1.4, size=(num_sentences, 11)), SIZE - NUM_SPECIAL)
        + NUM_SPECIAL
        - 1
    )
    lengths = generator.integers(0, 12, size=num_sentences)
    return [[], *(row[:length].tolist() for row, length in zip(words, lengths, strict=True))]
