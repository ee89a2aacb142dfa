"""Computes BLEU of single sentences: matches of n-grams up to order 4, smoothed.

    BLEU = exp(min(0, 1 - r / c)) · (p_1 · … · p_N)^(1 / N)        c, r: words of both sides

p_n is the share of the translation's n-grams that the reference has, each as often as the reference
has it. N is 4, or the length of a shorter translation. Most single sentences have no match of order
4, so zero counts are smoothed (Chen & Cherry 2014):

    exp     the k-th zero count becomes 1 / 2^k           their method 3, the default of sacreBLEU
    add_k   1 is added to matches and n-grams, n > 1      their method 2, Lin & Och 2004
    floor   a zero count becomes 0.1                      their method 1

Words are those of sacreBLEU's tokenizer for the language. The reward is between 0 and 1. The
n-grams of a reference are counted once for all of its translations.

Papineni et al. 2002. Tested against sacreBLEU's `sentence_bleu` with the same smoothing.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Literal

from headwise.evaluation.rewards.declaration import Reward, RewardKind, TextForm
from headwise.settings.kind import Words

MAX_ORDER = 4
FLOOR = 0.1
Smoothing = Literal["exp", "add_k", "floor"]
Counts = tuple[Counter[tuple[str, ...]], int]


class SentenceBleu(RewardKind):
    """BLEU of a sentence, smoothed."""

    title: ClassVar[Words] = ("sentence BLEU", "句子级 BLEU")
    summary: ClassVar[Words] = (
        "Shared n-grams up to order 4, with a penalty for short translations; smoothed.",
        "共有的一至四元组，对过短译文有惩罚；经平滑。",
    )
    paper: ClassVar[str] = (
        "Papineni et al. 2002, BLEU; Chen & Cherry 2014, A Systematic Comparison of Smoothing "
        "Techniques for Sentence-Level BLEU"
    )
    kind: Literal["sentence_bleu"] = "sentence_bleu"
    smoothing: Smoothing = "exp"
    """What counts of zero become: `exp` (1/2, 1/4, …), `add_k` (1 is added to all counts but those
    of words) or `floor` (0.1)."""

    def build(self, text: TextForm) -> Reward:
        from headwise.evaluation.translation import build_metrics

        metric = build_metrics(
            text.language, pretokenized=text.pretokenized, lowercase=text.lowercase
        )["bleu"]

        def count(sentence: str) -> Counts:
            shown = sentence.rstrip().lower() if text.lowercase else sentence.rstrip()
            return count_ngrams(metric.tokenizer(shown).split())

        def score(translations: Sequence[str], references: Sequence[str]) -> list[float]:
            counts = {one: count(one) for one in {*translations, *references}}
            return [
                sentence_bleu(counts[own], counts[other], smoothing=self.smoothing)
                for own, other in zip(translations, references, strict=True)
            ]

        return score


def count_ngrams(words: Sequence[str]) -> Counts:
    """All n-grams up to the highest order with their counts, and the number of words."""
    found: Counter[tuple[str, ...]] = Counter()
    for order in range(1, MAX_ORDER + 1):
        found.update(zip(*(words[start:] for start in range(order)), strict=False))
    return found, len(words)


def sentence_bleu(translation: Counts, reference: Counts, *, smoothing: Smoothing) -> float:
    """BLEU of one translation, between 0 and 1."""
    (ngrams, length), (wanted, wanted_length) = translation, reference
    matches = [0] * MAX_ORDER
    for ngram, count in ngrams.items():
        if ngram in wanted:
            matches[len(ngram) - 1] += min(count, wanted[ngram])
    if not any(matches):
        return 0.0
    logarithms, num_zeros = [], 0
    for order in range(1, MAX_ORDER + 1):
        found, total = matches[order - 1], max(0, length - order + 1)
        added = smoothing == "add_k" and order > 1
        if total + added == 0:
            break
        if found + added == 0:
            num_zeros += 1
            numerator = 0.5**num_zeros if smoothing == "exp" else FLOOR
        else:
            numerator = float(found + added)
        logarithms.append(math.log(numerator / (total + added)))
    brevity = min(0.0, 1 - wanted_length / length)
    return math.exp(brevity + sum(logarithms) / len(logarithms))
