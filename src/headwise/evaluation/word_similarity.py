"""Evaluates word vectors: similarity of word pairs as rated by people, and analogies.

    similarity   Spearman's rank correlation between cosines and human ratings
                 (WordSim-353, SimLex-999, MEN)
    analogy      a is to b as c is to ?  =  argmax of cos(w, b - a + c) over all words
                 except a, b, c  (Mikolov et al. 2013)

Words are compared without case: of Paris, PARIS and paris the most frequent one is used. Only the
300,000 most frequent words count, as in gensim. Pairs and questions with an unknown word are left
out and counted, as usual in the literature; a score needs its coverage. Tested against: scipy's
spearmanr (with ties), gensim's evaluate_word_pairs and evaluate_word_analogies.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from headwise.errors import DataError

Lines = Iterable[str]
MAX_WORDS = 300_000
"""Only this many of the most frequent words are used, like gensim's `restrict_vocab`."""
_QUESTIONS_AT_ONCE = 256


@dataclass(frozen=True)
class WordPair:
    """Two words and how similar people rate them."""

    first: str
    second: str
    score: float


@dataclass(frozen=True)
class Analogy:
    """first is to second as third is to fourth, in a group such as capital-common-countries."""

    group: str
    words: tuple[str, str, str, str]


@dataclass(frozen=True)
class WordScore:
    """A score in percent, and the share of the list that it covers."""

    name: str
    value: float
    used: int
    total: int


def parse_pairs(lines: Lines, file: Path) -> list[WordPair]:
    """`word word score` a line; more columns, empty lines and lines with # are ignored."""
    pairs = []
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if not fields or line.startswith("#"):
            continue
        score = _number(fields[2]) if len(fields) >= 3 else None
        if score is None:
            raise DataError(
                f"{line!r:.60} is not a pair; write two words and a number: tiger cat 7.35",
                f"{line!r:.60} 不是词对；应为两个词与一个数：tiger cat 7.35",
                file=file,
                line=number,
            )
        pairs.append(WordPair(fields[0], fields[1], score))
    return pairs


def parse_analogies(lines: Lines, file: Path) -> list[Analogy]:
    """Four words a line, groups begin with a line ": name"."""
    group, questions = "", []
    for number, line in enumerate(lines, start=1):
        fields = line.split()
        if line.startswith(":"):
            group = " ".join(fields[1:]) if fields[0] == ":" else " ".join(fields)[1:]
        elif fields:
            if len(fields) != 4:
                raise DataError(
                    f"has {len(fields)} words; an analogy has four: Athens Greece Oslo Norway",
                    f"有 {len(fields)} 个词；类比题应为四个：Athens Greece Oslo Norway",
                    file=file,
                    line=number,
                )
            first, second, third, fourth = fields
            questions.append(Analogy(group, (first, second, third, fourth)))
    return questions


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1; equal values get the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Rank correlation; 0 if one side is constant or there are fewer than two pairs."""
    if len(first) < 2:
        return 0.0
    x, y = (ranks(np.asarray(side, dtype=float)) for side in (first, second))
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale else 0.0


def fold(word: str) -> str:
    """A word without case, by its capitals as in gensim (ß equals SS)."""
    return word.upper()


def number_words(words: Sequence[str]) -> dict[str, int]:
    """The row of each word without case; the first of several, which is the most frequent."""
    numbers: dict[str, int] = {}
    for number, word in enumerate(words[:MAX_WORDS]):
        numbers.setdefault(fold(word), number)
    return numbers


def score_similarity(
    name: str, pairs: Sequence[WordPair], words: Sequence[str], unit_vectors: np.ndarray
) -> WordScore:
    """100 × Spearman's correlation."""
    numbers = number_words(words)
    found = [
        (numbers.get(fold(pair.first)), numbers.get(fold(pair.second)), pair.score)
        for pair in pairs
    ]
    known = [
        (first, second, score)
        for first, second, score in found
        if first is not None and second is not None
    ]
    cosines = [float(unit_vectors[first] @ unit_vectors[second]) for first, second, _ in known]
    return WordScore(
        name, 100 * spearman(cosines, [score for *_, score in known]), len(known), len(pairs)
    )


def score_analogies(
    questions: Sequence[Analogy], words: Sequence[str], unit_vectors: np.ndarray
) -> list[WordScore]:
    """Percent of correct answers, for each group and for all."""
    numbers = number_words(words)
    known = [
        question for question in questions if all(fold(word) in numbers for word in question.words)
    ]
    asked = np.array(
        [[numbers[fold(word)] for word in question.words] for question in known]
    ).reshape(-1, 4)
    right = _answer(asked, words[:MAX_WORDS], numbers, unit_vectors[:MAX_WORDS]) == asked[:, 3]
    groups: dict[str, list[int]] = {}
    for place, question in enumerate(known):
        groups.setdefault(question.group, []).append(place)
    totals: dict[str, int] = {}
    for question in questions:
        totals[question.group] = totals.get(question.group, 0) + 1
    scores = [
        WordScore(
            group,
            100 * float(right[groups[group]].mean()) if group in groups else 0.0,
            len(groups.get(group, ())),
            total,
        )
        for group, total in totals.items()
    ]
    return [
        *scores,
        WordScore(
            "all", 100 * float(right.mean()) if len(right) else 0.0, len(known), len(questions)
        ),
    ]


def _answer(
    asked: np.ndarray, words: Sequence[str], numbers: dict[str, int], unit_vectors: np.ndarray
) -> np.ndarray:
    """The row of the best answer to each question, ignoring case."""
    first_case = np.array([numbers[fold(word)] for word in words], dtype=np.int64)
    cases: dict[int, list[int]] = {}
    for number, first in enumerate(first_case.tolist()):
        cases.setdefault(first, []).append(number)
    answers = np.zeros(len(asked), dtype=np.int64)
    for start in range(0, len(asked), _QUESTIONS_AT_ONCE):
        some = asked[start : start + _QUESTIONS_AT_ONCE]
        goals = unit_vectors[some[:, 1]] - unit_vectors[some[:, 0]] + unit_vectors[some[:, 2]]
        cosines = goals @ unit_vectors.T
        for row, named in enumerate(some[:, :3].tolist()):
            cosines[row, [number for word in named for number in cases[word]]] = -np.inf
        answers[start : start + len(some)] = first_case[cosines.argmax(1)]
    return answers
