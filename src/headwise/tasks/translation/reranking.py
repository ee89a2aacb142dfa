"""Chooses among the candidates of a search with the scores of other models.

    score(y) = s(y) + Σ_k w_k · log p_k / n_k^α

s is the score that the search gave, n_k the number of tokens that model k predicted. The models:

    translator       log p(y | x)   of the same direction; one that writes from right to left
                                    (data.target_order: reversed) sees other mistakes than the
                                    search (Liu et al. 2016)
    channel          log p(x | y)   of the opposite direction: a translation that leaves something
                                    out does not explain its source (Yee et al. 2019)
    language_model   log p(y)       of the target language

With references the weights are chosen from a grid by the corpus BLEU of the chosen candidates.

Tested against: the log-probability of each token read one by one; weights of zero; the best
combination found by scoring every one with sacreBLEU.
"""

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from headwise.errors import DataError, UsageError
from headwise.evaluation.metric_statistics import SentenceStatistics
from headwise.evaluation.translation import build_metrics
from headwise.language import say
from headwise.models.limits import target_limits
from headwise.models.parallel.choices import is_parallel
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.tasks.translation.input_warning import InputCheck
from headwise.tasks.translation.judge import TranslatorJudge
from headwise.tasks.translation.length_limits import longest_source
from headwise.tasks.translation.nbest_lists import CandidateList
from headwise.training.precision import Device, choose_device

logger = logging.getLogger(__name__)

JUDGES = ("translator", "channel", "language_model")
GRID = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""The weights that are tried."""
OTHER_LANGUAGES = ("target_language", "other_language")
"""What input_warning.py says of a text in a language that the model does not read."""
BLOCK = 64
"""Sentences that are scored together."""

Totals = Sequence[tuple[float, int]]
"""Of each candidate the log-probability and the number of tokens it was summed over."""


class CandidateJudge(Protocol):
    """A model that scores translations."""

    def score(self, sources: Sequence[str], candidates: Sequence[str]) -> Totals: ...


@dataclass(frozen=True)
class TranslatorScores:
    """A translator that scores candidates given their sources or, as a channel, the other way
    round."""

    judge: TranslatorJudge
    path: Path
    is_channel: bool = False

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target of the translations that are scored."""
        data = self.judge.recipe.data
        return (data.target, data.source) if self.is_channel else (data.source, data.target)

    def score(self, sources: Sequence[str], candidates: Sequence[str]) -> Totals:
        given, written = (candidates, sources) if self.is_channel else (sources, candidates)
        own, model = self.judge.own, self.judge.recipe.model
        read, target = own.source.encode_batch(given), own.target.encode_batch(written)
        most_written = min((limit.tokens for limit in target_limits(model)), default=None)
        for texts, rows, most in (
            (given, read, longest_source(model).tokens),
            (written, target, most_written),
        ):
            for text, row in zip(texts, rows, strict=True):
                if most is not None and len(row) >= most:
                    raise DataError(
                        f"a sentence of {len(row) + 1:,} tokens is to be scored, but {self.path} "
                        f"takes at most {most:,}; leave it out: {text[:60]!r}",
                        f"要打分的句子有 {len(row) + 1:,} 个词元，而 {self.path} 最多接受 "
                        f"{most:,} 个；请去掉它：{text[:60]!r}",
                    )
        totals = self.judge.log_probabilities(read, target)
        return [(total, len(row) + 1) for total, row in zip(totals, target, strict=True)]


@dataclass(frozen=True)
class LanguageScores:
    """A language model of the target language; the source does not matter to it."""

    model: LanguageModel

    def score(self, sources: Sequence[str], candidates: Sequence[str]) -> Totals:
        return [(one.total, len(one.tokens)) for one in self.model.score(candidates)]


def load_judges(paths: Mapping[str, Path], *, device: Device = "auto") -> dict[str, CandidateJudge]:
    """The models of a re-ranking by what they are used as; translators must fit each other."""
    judges: dict[str, CandidateJudge] = {}
    directions: dict[str, tuple[str, str]] = {}
    for name, path in paths.items():
        if name == "language_model":
            judges[name] = LanguageScores(LanguageModel.load(path))
            continue
        bundle = load_translator_bundle(path)
        if is_parallel(bundle.recipe.model):
            raise UsageError(
                f"{path} is a parallel model, which cannot judge the order of words; give a "
                "translator that writes word by word (model.kind=encoder_decoder or recurrent)",
                f"{path} 是并行模型，无法评判词序；请给出逐词翻译的模型"
                "（model.kind=encoder_decoder 或 recurrent）",
            )
        model = bundle.model.to(choose_device(device)).eval()
        judge = TranslatorJudge(model, bundle.recipe, bundle.tokenizers, bundle.tokenizers)
        scores = TranslatorScores(judge, path, is_channel=name == "channel")
        directions[name] = scores.languages
        judges[name] = scores
    if len(set(directions.values())) > 1:
        first, second = (paths[name] for name in directions)
        ours, theirs = directions.values()
        raise UsageError(
            f"{first} scores translations {' → '.join(ours)}, and {second} {' → '.join(theirs)}; "
            "give a --channel of the opposite direction of --translator",
            f"{first} 评判 {' → '.join(ours)} 的译文，而 {second} 评判 {' → '.join(theirs)}；"
            "--channel 的方向应与 --translator 相反",
        )
    return judges


@dataclass(frozen=True)
class JudgedList:
    """A list of candidates with the normalised log-probabilities of each judge."""

    given: CandidateList
    judged: Mapping[str, tuple[float, ...]]

    def combine(self, weights: Mapping[str, float]) -> NDArray[np.float64]:
        """The score of each candidate; a judge of weight zero does not count."""
        total = np.array(self.given.scores)
        for name, values in self.judged.items():
            if weights.get(name, 0.0):
                total = total + weights[name] * np.array(values)
        return total

    def rank(self, weights: Mapping[str, float]) -> "RankedList":
        """The candidates, best first; equal ones keep their order."""
        scores = self.combine(weights)
        order = np.argsort(-scores, kind="stable").tolist()
        return RankedList(self, tuple(order), tuple(scores.tolist()))


@dataclass(frozen=True)
class RankedList:
    """A list of candidates in its new order."""

    list: JudgedList
    order: tuple[int, ...]
    scores: tuple[float, ...]

    @property
    def text(self) -> str:
        """The best candidate."""
        return self.list.given.texts[self.order[0]]

    def as_dict(self) -> dict[str, Any]:
        given, judged = self.list.given, self.list.judged
        n_best = [
            {
                "text": given.texts[i],
                "score": _finite(self.scores[i]),
                "search": given.scores[i],
                **{name: _finite(values[i]) for name, values in judged.items()},
            }
            for i in self.order
        ]
        return {
            "source": given.source,
            "text": self.text,
            "score": n_best[0]["score"],
            "n_best": n_best,
        }


def _finite(value: float) -> float | None:
    """JSON has no infinity, which a language model without smoothing gives."""
    return value if np.isfinite(value) else None


def judge_lists(
    lists: Iterable[CandidateList], judges: Mapping[str, CandidateJudge], *, alpha: float = 1.0
) -> Iterator[JudgedList]:
    """Score all candidates with every judge; any number of lists with the memory of a block."""
    remaining = iter(lists)
    is_first = True
    while block := list(itertools.islice(remaining, BLOCK)):
        sources = [one.source for one in block for _ in one.texts]
        texts = [text for one in block for text in one.texts]
        if is_first:
            _warn_of_other_languages(sources, texts, judges)
        is_first = False
        found = {name: judge.score(sources, texts) for name, judge in judges.items()}
        normal = {
            name: [total / count**alpha for total, count in totals]
            for name, totals in found.items()
        }
        first = 0
        for one in block:
            end = first + len(one.texts)
            yield JudgedList(one, {name: tuple(all_[first:end]) for name, all_ in normal.items()})
            first = end


def _warn_of_other_languages(
    sources: Sequence[str], candidates: Sequence[str], judges: Mapping[str, CandidateJudge]
) -> None:
    """Lists name no languages: say if most texts look like none that a translator reads."""
    for name, judge in judges.items():
        if not isinstance(judge, TranslatorScores):
            continue
        own, data = judge.judge.own, judge.judge.recipe.data
        check = InputCheck(own, source=data.source, target=data.target)
        texts = sorted(set(candidates if judge.is_channel else sources))
        found = [check(text, own.source.encode(text)) for text in texts]
        others = sum(one is not None and one.code in OTHER_LANGUAGES for one in found)
        if 2 * others > len(texts):
            logger.warning(
                "%s",
                say(
                    f"--{name} {judge.path} reads {data.source}, and {others:,} of {len(texts):,} "
                    "texts that it was given look like another language; give a --translator of "
                    "the direction of the lists, and a --channel of the opposite one",
                    f"--{name} {judge.path} 读的是 {data.source}，而给它的 {len(texts):,} 个文本中"
                    f"有 {others:,} 个像是另一种语言；--translator 的方向应与列表相同，"
                    "--channel 则相反",
                ),
            )


@dataclass(frozen=True)
class ChosenWeights:
    """The weights that were best on sentences with references."""

    weights: Mapping[str, float]
    before: float
    """BLEU of the order that the search gave."""
    after: float
    tried: int
    sentences: int


def choose_weights(
    lists: Sequence[JudgedList],
    references: Sequence[str],
    *,
    fixed: Mapping[str, float],
    language: str | None = None,
) -> ChosenWeights:
    """The combination of the grid with the highest BLEU; of equal ones, that of smaller weights.

    Weights in `fixed` are not varied.
    """
    if len(lists) != len(references):
        raise UsageError(
            f"there are {len(lists):,} lists of candidates and {len(references):,} references; "
            "give one reference for each list, line by line",
            f"有 {len(lists):,} 个候选列表与 {len(references):,} 句参考译文；请逐行对应",
        )
    flat = [text for one in lists for text in one.given.texts]
    repeated = [
        reference for one, reference in zip(lists, references, strict=True) for _ in one.given.texts
    ]
    statistics = SentenceStatistics.of(build_metrics(language)["bleu"], flat, [repeated])
    starts = np.cumsum([0, *(len(one.given.texts) for one in lists)])[:-1]

    def bleu(weights: Mapping[str, float]) -> float:
        best = [int(np.argmax(one.combine(weights))) for one in lists]
        return float(statistics.score_sums(statistics.rows[starts + best].sum(0)[None])[0])

    names = list(lists[0].judged)
    grids = [(fixed[name],) if name in fixed else GRID for name in names]
    tried = [dict(zip(names, values, strict=True)) for values in itertools.product(*grids)]
    scores = [bleu(weights) for weights in tried]
    best = int(np.argmax(scores))
    return ChosenWeights(tried[best], bleu({}), scores[best], len(tried), len(lists))
