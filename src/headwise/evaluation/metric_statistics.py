"""Counts what one sentence adds to a corpus score of sacreBLEU (the sufficient statistics of its
metrics).

BLEU, chrF and TER of a corpus are functions of *sums* over its sentences (n-gram matches and
totals, lengths, edits). With the statistics s_i of each sentence, the score of a resample that
contains sentence i c_i times is score(Σ_i c_i s_i): one matrix product gives a thousand resamples,
without reading text again. Tested: the sum over all sentences gives sacreBLEU's corpus score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK = 256
"""Resamples drawn at a time, which bounds memory to 256 numbers per sentence."""


@dataclass(frozen=True)
class SentenceStatistics:
    """A sacreBLEU metric and one row of statistics per sentence."""

    metric: Any
    rows: NDArray[np.float64]

    @staticmethod
    def of(
        metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
    ) -> "SentenceStatistics":
        """Statistics of every sentence; `references` holds one list per set of references, as
        sacreBLEU takes them.
        """
        # sacreBLEU's own significance tests rest on these two methods; the public ones give whole
        # scores only.
        rows = metric._extract_corpus_statistics(
            list(hypotheses), [list(each) for each in references]
        )
        return SentenceStatistics(metric, np.asarray(rows, dtype=np.float64))

    def score(self) -> float:
        return float(self.score_sums(self.rows.sum(0)[None])[0])

    @property
    def name(self) -> str:
        """What sacreBLEU calls the metric: BLEU, chrF2, TER."""
        return str(self.metric._compute_score_from_stats(list(self.rows.sum(0))).name)

    def score_sums(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """The corpus score of each row of summed statistics."""
        return np.array(
            [self.metric._compute_score_from_stats(list(total)).score for total in sums]
        )


def draw_counts(
    generator: np.random.Generator, num_sentences: int, *, num_resamples: int
) -> NDArray[np.float64]:
    """How often each sentence occurs in each resample, drawn with replacement."""
    even = np.full(num_sentences, 1 / num_sentences)
    return generator.multinomial(num_sentences, even, size=num_resamples).astype(np.float64)


def chunk_sizes(total: int) -> list[int]:
    """The sizes of the chunks of `total` resamples."""
    return [min(CHUNK, total - start) for start in range(0, total, CHUNK)]
