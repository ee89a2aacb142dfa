"""Measures polysemy: do the vectors of a word tell its senses apart?

For each model and layer, a linear probe (evaluation/linear_probe.py) learns the senses from the
training occurrences of a word and predicts those of the test occurrences. Static vectors cannot
tell senses apart; contextual vectors should. The baseline is the most frequent sense of the word.

A **hard pair** is two senses of a word with the same spelling, each with at least MIN_TRAIN
training and MIN_TEST test occurrences. Accuracy is the mean of the accuracies of both senses, so
their frequencies do not matter: a model that knows only the word scores exactly 50.0.

Test occurrences are left out if the training data lacks their sense or has only one sense of the
word. The report says how many.

Tested against: static vectors score 50 exactly; a contextual model finds senses that a neighbouring
word determines.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from headwise.data.labels.word_senses import Occurrence
from headwise.errors import UsageError
from headwise.evaluation.linear_probe import ProbeScore, fit_probe, score_classes
from headwise.language import say
from headwise.tasks.events import Events, Silence
from headwise.tasks.pretraining.contextual_vectors import WordReader

MIN_TRAIN, MIN_TEST = 100, 40
MAX_TRAIN = 500
"""The probe learns from at most so many occurrences of each sense, the first ones: more change
little and take long to read."""


@dataclass(frozen=True)
class SenseVectors:
    """The occurrences of one part, and each model's vectors of them, layer by layer."""

    occurrences: tuple[Occurrence, ...]
    layers: Mapping[str, Sequence[np.ndarray]]

    def of(self, word: str, senses: Sequence[str]) -> np.ndarray:
        """Numbers of the occurrences of a word in these senses."""
        wanted = set(senses)
        chosen = [
            n for n, one in enumerate(self.occurrences) if one.word == word and one.sense in wanted
        ]
        return np.array(chosen, dtype=np.int64)

    def senses(self, numbers: np.ndarray) -> list[str]:
        return [self.occurrences[number].sense for number in numbers]


@dataclass(frozen=True)
class WordResult:
    """All senses of a word, by each model's last layer."""

    word: str
    senses: tuple[str, ...]
    num_train: int
    num_test: int
    most_frequent: ProbeScore
    scores: Mapping[str, ProbeScore]


@dataclass(frozen=True)
class PairResult:
    """Two senses of a word: balanced accuracy of each model, layer by layer."""

    word: str
    senses: tuple[str, str]
    balanced: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class SenseReport:
    """Everything measured."""

    words: tuple[WordResult, ...]
    pairs: tuple[PairResult, ...]
    num_unlearnt: int = 0
    """Test occurrences left out because the training part does not show their sense, or only one
    sense of their word."""

    def mean_of_pairs(self, model: str) -> tuple[float, ...]:
        """Balanced accuracy of a model over the hard pairs, layer by layer."""
        rows = np.array([pair.balanced[model] for pair in self.pairs])
        return tuple(float(value) for value in rows.mean(0)) if len(rows) else ()

    def as_dict(self) -> dict[str, Any]:
        models = list(self.words[0].scores)
        return {
            "hard_pairs": {
                name: [_percent(value) for value in self.mean_of_pairs(name)] for name in models
            },
            "pairs": [
                {
                    "word": pair.word,
                    "senses": list(pair.senses),
                    "balanced": {
                        name: [_percent(one) for one in layers]
                        for name, layers in pair.balanced.items()
                    },
                }
                for pair in self.pairs
            ],
            "words": [
                {
                    "word": one.word,
                    "senses": list(one.senses),
                    "train": one.num_train,
                    "test": one.num_test,
                    "most_frequent": _percent(one.most_frequent.accuracy),
                    "chance": _percent(one.most_frequent.balanced),
                    "accuracy": {
                        name: _percent(score.accuracy) for name, score in one.scores.items()
                    },
                    "balanced": {
                        name: _percent(score.balanced) for name, score in one.scores.items()
                    },
                }
                for one in self.words
            ],
            "unlearnt": self.num_unlearnt,
        }


def _percent(share: float) -> float:
    return round(100 * share, 2)


def read_vectors(
    readers: Mapping[str, WordReader],
    occurrences: Sequence[Occurrence],
    watcher: Events,
    *,
    limit: int | None = None,
) -> SenseVectors:
    """Every model's vectors of the occurrences; at most `limit` of each sense."""
    seen: Counter[tuple[str, str]] = Counter()
    kept = []
    for one in occurrences:
        seen[one.word, one.sense] += 1
        if limit is None or seen[one.word, one.sense] <= limit:
            kept.append(one)
    layers = {}
    for name, reader in readers.items():
        watcher.note(
            say(
                f"{name}: reading {len(kept):,} sentences …", f"{name}：正在读取 {len(kept):,} 句……"
            )
        )
        layers[name] = reader.read(kept)
    return SenseVectors(tuple(kept), layers)


def measure_senses(
    readers: Mapping[str, WordReader],
    train: Sequence[Occurrence],
    test: Sequence[Occurrence],
    *,
    events: Events | None = None,
) -> tuple[SenseReport, SenseVectors]:
    """Probe every word and every hard pair; the vectors of the test part are for pictures."""
    watcher = events or Silence()
    shown: dict[str, set[str]] = {}
    for one in train:
        shown.setdefault(one.word, set()).add(one.sense)
    learnt = [
        one for one in test if one.sense in shown.get(one.word, ()) and len(shown[one.word]) > 1
    ]
    words = list(dict.fromkeys(one.word for one in learnt))
    if not words:
        raise UsageError(
            f"of {len(test):,} test occurrences none has a sense that the training part shows "
            "beside another sense of its word; give parts that belong together",
            f"测试部分的 {len(test):,} 次出现中，没有一个的义项见于训练部分、"
            "且该词在其中有两个以上义项；请给出配套的两部分",
        )
    fitted = read_vectors(
        readers, [one for one in train if one.word in words], watcher, limit=MAX_TRAIN
    )
    asked = read_vectors(readers, learnt, watcher)
    frequencies = {word: Counter(one.sense for one in train if one.word == word) for word in words}
    pairs = [(word, pair) for word in words for pair in hard_pairs(word, train, learnt)]
    results = []
    label = say("words and pairs probed", "已探测的词与词对")
    for number, word in enumerate(words, start=1):
        results.append(_probe_word(word, frequencies[word], fitted, asked))
        watcher.count(label, number, len(words) + len(pairs))
    found = []
    for number, (word, pair) in enumerate(pairs, start=len(words) + 1):
        found.append(_probe_pair(word, pair, fitted, asked))
        watcher.count(label, number, len(words) + len(pairs))
    return SenseReport(tuple(results), tuple(found), len(test) - len(learnt)), asked


def hard_pairs(
    word: str, train: Sequence[Occurrence], test: Sequence[Occurrence]
) -> list[tuple[str, str]]:
    """By the rule above, the more frequent sense first."""
    counts = [Counter(one.sense for one in part if one.word == word) for part in (train, test)]
    frequent = [
        sense
        for sense, count in counts[0].most_common()
        if count >= MIN_TRAIN and counts[1][sense] >= MIN_TEST
    ]
    return list(combinations(frequent, 2))


def _probe_word(
    word: str, frequencies: Counter[str], fitted: SenseVectors, asked: SenseVectors
) -> WordResult:
    senses = tuple(sense for sense, _ in frequencies.most_common())
    learnt, tested = fitted.of(word, senses), asked.of(word, senses)
    gold = asked.senses(tested)
    scores = {
        name: _score(
            fitted.layers[name][-1][learnt], fitted.senses(learnt), layers[-1][tested], gold
        )
        for name, layers in asked.layers.items()
    }
    always = score_classes(gold, [senses[0]] * len(gold))
    return WordResult(word, senses, frequencies.total(), len(gold), always, scores)


def _probe_pair(
    word: str, pair: tuple[str, str], fitted: SenseVectors, asked: SenseVectors
) -> PairResult:
    learnt, tested = fitted.of(word, pair), asked.of(word, pair)
    given, gold = fitted.senses(learnt), asked.senses(tested)
    balanced = {
        name: tuple(
            _score(known[learnt], given, layer[tested], gold).balanced
            for known, layer in zip(fitted.layers[name], layers, strict=True)
        )
        for name, layers in asked.layers.items()
    }
    return PairResult(word, pair, balanced)


def _score(
    vectors: np.ndarray, given: Sequence[str], asked: np.ndarray, gold: Sequence[str]
) -> ProbeScore:
    return score_classes(gold, fit_probe(vectors, given).predict(asked))
