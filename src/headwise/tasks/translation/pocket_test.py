"""Measures a translator on the pocket corpus, whose grammar knows every right answer.

Besides BLEU and chrF it counts sentences that are right in every word, pronouns that agree with the
noun they refer to, and how well attention links words with their translations (alignment error
rate).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwise.evaluation.alignment import (
    AlignmentScores,
    GoldLinks,
    Links,
    assign_pieces,
    link_greatest,
    merge_pieces,
    score_alignments,
    select_rows,
)
from headwise.evaluation.translation import TranslationScores, score_translations
from headwise.pocket import Sentence, pronouns_correct, pronouns_word_for_word, sentences
from headwise.tasks.translation.attention_trace import AttentionTrace
from headwise.tasks.translation.translator import Translator


@dataclass(frozen=True)
class PocketScores:
    """The scores of one test set."""

    split: str
    num_sentences: int
    translation: TranslationScores
    pronoun_accuracy: float
    num_pronoun_sentences: int
    pronouns_word_for_word: float
    """What the accuracy would be if each pronoun were translated by itself: where it is high,
    pronouns test little."""
    wrong: tuple[tuple[str, str, str], ...]
    """The first mistakes: source, translation, reference."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "sentences": self.num_sentences,
            "bleu": self.translation.bleu.value,
            "chrf": self.translation.chrf.value,
            "exact_match": self.translation.exact_match,
            "pronoun_accuracy": self.pronoun_accuracy,
            "pronoun_sentences": self.num_pronoun_sentences,
            "pronouns_word_for_word": self.pronouns_word_for_word,
            "signature": self.translation.bleu.signature,
        }


def measure_pocket(
    translator: Translator,
    split: str,
    *,
    count: int = 500,
    progress: Callable[[int, int], None] | None = None,
) -> PocketScores:
    """Translate `count` sentences of a split and judge them."""
    source, target = translator.source_language, translator.target_language
    chosen = list(sentences(split, count))
    hypotheses = []
    for translation in translator.stream(sentence.text(source) for sentence in chosen):
        hypotheses.append(translation.text)
        if progress is not None:
            progress(len(hypotheses), count)
    references = [sentence.text(target) for sentence in chosen]
    judged = [
        pronouns_correct(sentence, target, hypothesis)
        for sentence, hypothesis in zip(chosen, hypotheses, strict=True)
    ]
    relevant = [verdict for verdict in judged if verdict is not None]
    wrong = [
        (sentence.text(source), hypothesis, reference)
        for sentence, hypothesis, reference in zip(chosen, hypotheses, references, strict=True)
        if hypothesis != reference
    ]
    return PocketScores(
        split,
        count,
        score_translations(hypotheses, references, language=target, num_resamples=0),
        sum(relevant) / max(1, len(relevant)),
        len(relevant),
        pronouns_word_for_word(chosen, source, target),
        tuple(wrong[:20]),
    )


@dataclass(frozen=True)
class HeadAlignment:
    """How well one way of reading cross-attention finds the true word alignment."""

    layer: int
    head: int | None
    """None: the mean of all heads."""
    shifted: bool
    """False: the step that predicts a word; True: the step that reads it."""
    scores: AlignmentScores

    def as_dict(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "head": self.head,
            "shifted": self.shifted,
            **self.scores.as_dict(),
        }


def measure_alignment(
    translator: Translator, *, count: int = 200, split: str = "test"
) -> list[HeadAlignment]:
    """Alignment error rate of every layer and head, best first, on reference translations (teacher
    forcing).
    """
    source, target = translator.source_language, translator.target_language
    chosen = list(sentences(split, count))
    gold = [GoldLinks(links, links) for links in (one.alignment(source, target) for one in chosen)]
    traces = [_trace(translator, one) for one in chosen]
    source_words = [
        assign_pieces(t.source_pieces[:-1], one.words(source))
        for t, one in zip(traces, chosen, strict=True)
    ]
    target_words = [
        assign_pieces(t.target_pieces[:-1], one.words(target))
        for t, one in zip(traces, chosen, strict=True)
    ]
    results = []
    crosses = [weights for name, weights in traces[0].maps.items() if name.endswith(".cross")]
    for layer, weights in enumerate(crosses):
        for head in (None, *range(len(weights))):
            for shifted in (False, True):
                links = [
                    _links(
                        trace,
                        f"decoder.{layer}.cross",
                        head,
                        shifted=shifted,
                        source=left,
                        target=right,
                    )
                    for trace, left, right in zip(traces, source_words, target_words, strict=True)
                ]
                results.append(HeadAlignment(layer, head, shifted, score_alignments(links, gold)))
    return sorted(results, key=lambda result: result.scores.error_rate)


@dataclass(frozen=True)
class AlignmentScale:
    """Both ends of the error rate on the same sentences, for readers that link every target word
    once, as attention is read.
    """

    lowest: float
    """Each target word linked to a right source word wherever it has one."""
    straight: float
    """Each linked to the source word at the same share of the sentence."""


def scale_alignment(
    source: str, target: str, *, count: int = 200, split: str = "test"
) -> AlignmentScale:
    """What an alignment error rate of this pair of languages can be compared with."""
    right, straight, gold = [], [], []
    for one in sentences(split, count):
        links, num_source, num_target = (
            one.alignment(source, target),
            len(one.words(source)),
            len(one.words(target)),
        )
        gold.append(GoldLinks(links, links))
        straight.append(
            frozenset((place * num_source // num_target, place) for place in range(num_target))
        )
        known = {there: here for here, there in links}
        right.append(frozenset((known.get(place, 0), place) for place in range(num_target)))
    return AlignmentScale(
        score_alignments(right, gold).error_rate, score_alignments(straight, gold).error_rate
    )


def _trace(translator: Translator, sentence: Sentence) -> AttentionTrace:
    tokenizers = translator.tokenizers
    return translator.trace(
        tokenizers.source.encode(sentence.text(translator.source_language)),
        tokenizers.target.encode(sentence.text(translator.target_language)),
    )


def _links(
    trace: AttentionTrace,
    name: str,
    head: int | None,
    *,
    shifted: bool,
    source: Sequence[int],
    target: Sequence[int],
) -> Links:
    weights = trace.maps[name]
    chosen = weights.mean(axis=0) if head is None else weights[head]
    rows = select_rows(np.asarray(chosen, dtype=np.float64), len(target), shifted=shifted)
    return link_greatest(merge_pieces(rows, source, target))
