"""Measures how close a translation of one sentence is to its reference: sentence-level BLEU by
sacreBLEU.

Sequence-level interpolation (Kim & Rush 2016) keeps the hypothesis of the teacher that is closest
to the reference. BLEU of a single sentence is usually 0, because some n-gram order has no match;
so orders without a match are smoothed (`exp`), and orders longer than the sentence are left out.

Tested against sacreBLEU's function and by hand-made orders of closeness.
"""

from collections.abc import Callable

from sacrebleu.metrics import BLEU

from headwise.evaluation.translation import tokenizer_for

Closeness = Callable[[str, str], float]
"""Of a hypothesis to a reference; greater is closer."""


def sentence_bleu(
    language: str | None = None, *, pretokenized: bool = False, lowercase: bool = False
) -> Closeness:
    """A function that gives the BLEU of one hypothesis, 0 to 100."""
    metric = BLEU(
        effective_order=True,
        tokenize=tokenizer_for(language, pretokenized=pretokenized),
        lowercase=lowercase,
        force=True,
    )

    def closeness(hypothesis: str, reference: str) -> float:
        return float(metric.sentence_score(hypothesis, [reference]).score)

    return closeness
