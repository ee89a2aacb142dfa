"""Two faults of parallel translations: repeated words and wrong lengths.

    repetition rate   tokens that equal the token before them / all tokens
    length error      mean over sentences of |hypothesis − reference| / reference, in tokens

A decoder that chooses all positions at once can write a word twice where two positions mean the
same word (Gu et al. 2018, "the multimodality problem"), and it must guess the length. Tokens are
those that BLEU counts for the language, so that models with different vocabularies are compared by
the same units. Tested against sentences counted by hand.
"""

from collections.abc import Sequence
from itertools import pairwise

from sacrebleu.metrics import BLEU


def tokens_of_bleu(texts: Sequence[str], metric: BLEU) -> list[list[str]]:
    """The tokens of each text as BLEU counts them."""
    return [metric.tokenizer(text.strip()).split() for text in texts]


def repetition_rate(sentences: Sequence[Sequence[str]]) -> float:
    """The share of tokens that equal the token before them; 0 for no tokens."""
    repeated = sum(before == after for tokens in sentences for before, after in pairwise(tokens))
    return repeated / max(1, sum(map(len, sentences)))


def length_error(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """The mean relative difference of lengths; an empty reference counts as one token."""
    errors = [
        abs(len(hypothesis) - len(reference)) / max(1, len(reference))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    return sum(errors) / max(1, len(errors))
