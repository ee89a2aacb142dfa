"""Computes BLEU of single sentences: matches of n-grams up to order 4, smoothed.

    BLEU = exp(min(0, 1 - r / c)) · (p_1 · … · p_N)^(1 / N)        c, r: words of both sides

p_n is the share of the translation's n-grams that the reference has, each as often as the reference
has it. N is 4, or the length of a shorter translation. Most single sentences have no match of order
4, so zero counts are smoothed (Chen & Cherry 2014):

    exp     the k-th zero count becomes 1 / 2^k           their method 3, the default of sacreBLEU
    add_k   1 is added to matches and n-grams, n > 1      their method 2, Lin & Och 2004
    floor   a zero count becomes 0.1                      their method 1

Words are those of sacreBLEU's tokenizer for the language. The reward is between 0 and 1. All
translations of a batch are counted at once (ngram_matches.py).

Papineni et al. 2002. Tested against sacreBLEU's `sentence_bleu` with the same smoothing.
"""

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int

from headwise.evaluation.rewards.declaration import Reward, RewardKind, TextForm
from headwise.evaluation.rewards.ngram_matches import NumberedWords, count_matches
from headwise.settings.kind import Words

MAX_ORDER = 4
FLOOR = 0.1
Smoothing = Literal["exp", "add_k", "floor"]


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

        tokenize = build_metrics(
            text.language, pretokenized=text.pretokenized, lowercase=text.lowercase
        )["bleu"].tokenizer
        words = NumberedWords(tokenize, by_pieces=tokenize.signature() in ("13a", "none"))

        def score(translations: Sequence[str], references: Sequence[str]) -> list[float]:
            different = {one: number for number, one in enumerate(dict.fromkeys(references))}
            texts = [one.rstrip() for one in (*translations, *different)]
            shown = [one.lower() for one in texts] if text.lowercase else texts
            flat, lengths = words.number(shown)
            count = len(translations)
            border = int(lengths[:count].sum())
            own, others = (flat[:border], lengths[:count]), (flat[border:], lengths[count:])
            which = np.array([different[one] for one in references], dtype=np.int64)
            matches = count_matches(own, others, which, max_order=MAX_ORDER)
            values: list[float] = sentence_bleu(
                matches, own[1], others[1][which], smoothing=self.smoothing
            ).tolist()
            return values

        return score


def sentence_bleu(
    matches: Int[np.ndarray, "translation order"],
    length: Int[np.ndarray, " translation"],
    reference_length: Int[np.ndarray, " translation"],
    *,
    smoothing: Smoothing,
) -> Float[np.ndarray, " translation"]:
    """BLEU of each translation, between 0 and 1, from its matches and the words of both sides."""
    order = np.arange(1, MAX_ORDER + 1)
    added = (order > 1) if smoothing == "add_k" else np.zeros(MAX_ORDER, dtype=bool)
    found = matches + added
    total = np.maximum(0, length[:, None] - order + 1) + added
    counts = total > 0
    is_zero = counts & (found == 0)
    instead = 0.5 ** is_zero.cumsum(1) if smoothing == "exp" else FLOOR
    share = np.where(is_zero, instead, found) / np.maximum(total, 1)
    logarithm = np.log(np.where(counts, share, 1)).sum(1) / np.maximum(counts.sum(1), 1)
    brevity = np.minimum(0.0, 1 - reference_length / np.maximum(length, 1))
    return np.where(matches.any(1), np.exp(brevity + logarithm), 0.0)
