"""Scores translations: BLEU, chrF and TER by sacreBLEU, with signature and interval.

A score without its signature (tokenizer, case, smoothing, version) cannot be compared with another
(Post 2018). The tokenizer follows the target language: `13a` for most, `zh` for Chinese, characters
for other languages without spaces; `pretokenized` takes the text as it is (tokenizer `none`). The
interval is the 95 % bootstrap percentile interval (Koehn 2004) over resamples of the test set.
Tested against sacreBLEU's corpus functions; the interval against its definition.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF, TER

from headwise.errors import DataError
from headwise.evaluation.metric_statistics import SentenceStatistics, chunk_sizes, draw_counts
from headwise.randomness import numpy_generator

TOKENIZERS = {
    "zh": "zh",
    "ja": "char",
    "ko": "char",
    "th": "char",
    "lo": "char",
    "km": "char",
    "my": "char",
}


@dataclass(frozen=True)
class Score:
    """One metric of one system; the interval is None without resamples."""

    name: str
    value: float
    signature: str
    low: float | None = None
    high: float | None = None
    num_resamples: int = 0

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @property
    def with_interval(self) -> str:
        """As tables show it."""
        if self.low is None or self.high is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} [{self.low:.1f}, {self.high:.1f}]"

    def __str__(self) -> str:
        interval = (
            "" if self.low is None or self.high is None else f" [{self.low:.1f}, {self.high:.1f}]"
        )
        return f"{self.name} {self.value:.1f}{interval} ({self.signature})"


@dataclass(frozen=True)
class TranslationScores:
    """All metrics of one system on one test set."""

    bleu: Score
    chrf: Score
    ter: Score
    exact_match: float
    """Share of sentences that equal a reference, apart from spaces at the ends."""
    num_sentences: int

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def tokenizer_for(language: str | None, *, pretokenized: bool = False) -> str:
    """sacreBLEU's tokenizer for text in this language (`zh`, `zh-CN`, `de`, …)."""
    if pretokenized:
        return "none"
    return TOKENIZERS.get((language or "").replace("_", "-").split("-")[0].lower(), "13a")


def build_metrics(
    language: str | None = None, *, pretokenized: bool = False, lowercase: bool = False
) -> dict[str, BLEU | CHRF | TER]:
    """sacreBLEU's metrics set up for a target language."""
    asian = not pretokenized and tokenizer_for(language) != "13a"
    return {
        # `force` only silences the warning that text looks tokenized: here that is the caller's
        # decision.
        "bleu": BLEU(
            tokenize=tokenizer_for(language, pretokenized=pretokenized),
            lowercase=lowercase,
            force=True,
        ),
        "chrf": CHRF(lowercase=lowercase),
        "ter": TER(case_sensitive=not lowercase, normalized=asian, asian_support=asian),
    }


def score_translations(
    hypotheses: Sequence[str],
    references: Sequence[str] | Sequence[Sequence[str]],
    *,
    language: str | None = None,
    pretokenized: bool = False,
    lowercase: bool = False,
    num_resamples: int = 1000,
    seed: int = 12345,
) -> TranslationScores:
    """Score hypotheses against one reference each, or against several sets of references."""
    sets = check_parallel(hypotheses, references)
    metrics = build_metrics(language, pretokenized=pretokenized, lowercase=lowercase)
    scores = {
        name: score_metric(metric, hypotheses, sets, num_resamples=num_resamples, seed=seed)
        for name, metric in metrics.items()
    }
    matches = [
        text.strip() in {each[i].strip() for each in sets} for i, text in enumerate(hypotheses)
    ]
    return TranslationScores(
        **scores, exact_match=float(np.mean(matches)), num_sentences=len(hypotheses)
    )


def score_metric(
    metric: BLEU | CHRF | TER,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    num_resamples: int,
    seed: int,
) -> Score:
    """One metric with its bootstrap interval; the same seed draws the same sentences."""
    statistics = SentenceStatistics.of(metric, hypotheses, references)
    low = high = None
    if num_resamples:
        generator = numpy_generator(seed, "bootstrap")
        drawn = [
            statistics.score_sums(
                draw_counts(generator, len(hypotheses), num_resamples=size) @ statistics.rows
            )
            for size in chunk_sizes(num_resamples)
        ]
        low, high = (float(bound) for bound in np.percentile(np.concatenate(drawn), [2.5, 97.5]))
    return Score(
        statistics.name, statistics.score(), str(metric.get_signature()), low, high, num_resamples
    )


def check_parallel(
    hypotheses: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]]
) -> list[Sequence[str]]:
    """The sets of references; an error unless each is as long as the hypotheses."""
    sets: list[Any] = (
        [references] if not references or isinstance(references[0], str) else list(references)
    )
    if not hypotheses:
        raise DataError(
            "there are no translations to score; give at least one",
            "没有可评分的译文；请至少给出一句",
        )
    for each in sets:
        if len(each) != len(hypotheses):
            raise DataError(
                f"there are {len(hypotheses)} translations but {len(each)} references; give one "
                "reference line for each",
                f"有 {len(hypotheses)} 句译文，却有 {len(each)} 句参考；请逐行对应",
            )
    return sets
