"""Probabilities against their definition: sums, a written-out recursion, NLTK, hand-worked
cases."""

import importlib
import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from headwise.models.ngram import NgramModel, TokenStream, count_ngrams, estimate
from headwise.models.ngram.choices import (
    AbsoluteDiscounting,
    AddK,
    Katz,
    KneserNey,
    MaximumLikelihood,
    ModifiedKneserNey,
    SmoothingSettings,
    StupidBackoff,
)
from headwise.models.ngram.estimation import FALLBACK, find_discounts
from headwise.text.tokenizer import BOS, EOS, PAD, UNKNOWN
from tests.models.ngram.texts import SIZE, draw_sentences

NORMALISED: list[SmoothingSettings] = [
    AddK(),
    AddK(k=0.03),
    AbsoluteDiscounting(),
    AbsoluteDiscounting(form="backoff", discount=0.7),
    KneserNey(),
    KneserNey(form="backoff"),
    ModifiedKneserNey(),
    ModifiedKneserNey(form="backoff"),
    Katz(),
]
ALL = [*NORMALISED, StupidBackoff(), MaximumLikelihood()]


def _model(
    smoothing: SmoothingSettings, order: int, sentences: list[list[int]] | None = None
) -> NgramModel:
    stream = TokenStream.of_sentences(sentences or draw_sentences())
    return NgramModel(estimate(count_ngrams(stream, order=order, vocabulary=SIZE), smoothing))


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("smoothing", NORMALISED, ids=repr)
def test_probabilities_sum_to_one_after_every_context(
    smoothing: SmoothingSettings, order: int
) -> None:
    model = _model(smoothing, order)
    prefixes = [
        [],
        [5],
        [22, 22, 22],
        [UNKNOWN, UNKNOWN],
        *draw_sentences(7),
        *draw_sentences(7, key="unseen"),
    ]
    probabilities = np.exp(model.next_words(prefixes).astype(np.float64))
    assert probabilities.sum(axis=1) == pytest.approx(1.0, abs=1e-5)
    assert (probabilities[:, [PAD, BOS]] == 0).all()
    assert probabilities[:, UNKNOWN].min() > 0


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("smoothing", ALL, ids=repr)
def test_scoring_a_text_is_asking_for_each_next_word(
    smoothing: SmoothingSettings, order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = _model(smoothing, order)
    # Many chunks, most of them beginning inside a sentence.
    monkeypatch.setattr("headwise.models.ngram.model.CHUNK", 13)
    sentences = draw_sentences(17, key="new")
    for sentence, scores in zip(sentences, model.score(sentences), strict=True):
        prefixes = [sentence[:length] for length in range(len(sentence) + 1)]
        asked = model.next_words(prefixes)[np.arange(len(prefixes)), [*sentence, EOS]]
        assert scores == pytest.approx(asked, abs=1e-5)
    assert model.score([]) == []


def _kneser_ney_by_hand(
    sentences: list[list[int]], order: int, discount: float
) -> dict[tuple[int, ...], float]:
    """The recursion of Chen and Goodman (1998), written out: p(w | h) for every context and
    word."""
    raw: Counter[tuple[int, ...]] = Counter()
    before = defaultdict(set)
    for sentence in sentences:
        whole = (BOS, *sentence, EOS)
        for length in range(1, order + 2):
            for end in range(length, len(whole) + 1):
                gram = whole[end - length : end]
                raw[gram] += 1
                before[gram[1:]].add(gram[0])

    def count(gram: tuple[int, ...]) -> int:
        return (
            raw[gram]
            if len(gram) == order or gram[0] == BOS
            else len(before[gram])
            if raw[gram]
            else 0
        )

    words = [word for word in range(SIZE) if word not in (PAD, BOS)]

    def probability(history: tuple[int, ...], word: int) -> float:
        counts = {other: count((*history, other)) for other in words}
        total = sum(counts.values())
        lower = 1 / len(words) if not history else probability(history[1:], word)
        if history and total == 0:
            return lower
        freed = discount * sum(value > 0 for value in counts.values()) / total
        return max(counts[word] - discount, 0) / total + freed * lower

    histories = [(), (BOS,), (5,), (BOS, 4), (4, 5), (5, 4), (22, 5), (5, 22)]
    return {
        (*history, word): probability(history, word)
        for history in histories
        for word in (4, 5, 9, EOS, UNKNOWN)
    }


def test_kneser_ney_is_the_recursion_written_out() -> None:
    sentences = draw_sentences(19)
    model = _model(KneserNey(discount=0.6), 3, sentences)
    for gram, expected in _kneser_ney_by_hand(sentences, 3, 0.6).items():
        history, word = gram[:-1], gram[-1]
        if history[:1] == (BOS,):
            found = model.next_words([history[1:]])[0, word]
        else:  # an unknown word in front: a context that was never seen
            found = model.next_words([[UNKNOWN, UNKNOWN, *history]])[0, word]
        assert math.exp(found) == pytest.approx(expected, rel=1e-5)


def test_nltk_agrees() -> None:
    """Its context `<s> <s>` is our `<s>`, and counted twice as often as a beginning: contexts
    inside a sentence are compared."""
    lm = importlib.import_module("nltk.lm")
    sentences = [sentence for sentence in draw_sentences() if sentence]
    counter = lm.NgramCounter(
        [
            [(str(BOS), *map(str, s), str(EOS))[i : i + 2] for i in range(len(s) + 1)]
            for s in sentences
        ]
    )
    vocabulary = lm.Vocabulary(
        [str(word) for word in range(SIZE) if word not in (PAD, BOS)], unk_label=str(UNKNOWN)
    )
    smoothing = lm.smoothing.AbsoluteDiscounting(vocabulary, counter, discount=0.75)
    alpha, gamma = smoothing.alpha_gamma("5", (str(4),))
    tables = count_ngrams(TokenStream.of_sentences(sentences), order=2, vocabulary=SIZE)
    model = NgramModel(estimate(tables, AbsoluteDiscounting(discount=0.75)))
    lower = math.exp(
        NgramModel(estimate(tables[:1], AbsoluteDiscounting(discount=0.75))).next_words([[]])[0, 5]
    )
    assert math.exp(model.next_words([[UNKNOWN, 4]])[0, 5]) == pytest.approx(
        alpha + gamma * lower, rel=1e-5
    )


def test_a_word_with_one_companion_is_unlikely_elsewhere() -> None:
    """San Francisco: 5 stands only after 4, 6 after many; both are equally frequent."""
    sentences = [[4, 5]] * 5 + [[7, 6], [8, 6], [9, 6], [10, 6], [11, 6]]
    after_new = np.exp(_model(KneserNey(), 2, sentences).next_words([[12]])[0])
    assert after_new[6] > 3 * after_new[5]
    raw = np.exp(_model(AbsoluteDiscounting(), 2, sentences).next_words([[12]])[0])
    assert raw[6] == pytest.approx(raw[5])


def test_maximum_likelihood_by_hand() -> None:
    model = _model(MaximumLikelihood(), 2, [[4, 5], [4, 6], [5]])
    assert np.exp(model.score([[4, 5]])[0]) == pytest.approx([2 / 3, 1 / 2, 1.0])
    assert model.score([[6, 5]])[0][0] == -np.inf


def test_add_one_by_hand_and_worse_with_more_context() -> None:
    model = _model(AddK(), 2, [[4, 5], [4, 6], [5]])
    size = SIZE - 2
    assert np.exp(model.score([[4, 9]])[0]) == pytest.approx(
        [(2 + 1) / (3 + size), 1 / (2 + size), 1 / size]
    )
    held_out = draw_sentences(29, key="held out")
    totals = [
        sum(float(one.sum()) for one in _model(AddK(), order).score(held_out))
        for order in (2, 3, 4)
    ]
    assert totals == sorted(totals, reverse=True)


def test_discounts() -> None:
    counts = np.array([1] * 10 + [2] * 4 + [3] * 2 + [4] * 1)
    y = 10 / (10 + 2 * 4)
    expected = [0, 1 - 2 * y * 4 / 10, 2 - 3 * y * 2 / 4, 3 - 4 * y * 1 / 2]
    assert find_discounts(counts, ModifiedKneserNey()) == pytest.approx(expected)
    assert find_discounts(counts, KneserNey()) == pytest.approx([0, y])
    assert find_discounts(np.array([5, 5, 7]), ModifiedKneserNey()) == pytest.approx([0, *FALLBACK])
    assert find_discounts(np.array([5, 5, 7]), KneserNey()) == pytest.approx([0, FALLBACK[0]])
    turing = find_discounts(np.array([1] * 100 + [2] * 30 + [3] * 14 + [4] * 8), Katz(largest=3))
    assert turing[0] == turing[-1] == 0
    assert (turing[1:4] > 0).all()
    # What the unseen get: n₁.
    assert (turing * np.array([0, 100, 30, 14, 0])).sum() == pytest.approx(100)
    assert find_discounts(np.array([9, 9]), Katz()) == pytest.approx([0, FALLBACK[0]])
    # As many words twice as make 2 n₂ = n₁: nothing would be left to take.
    with np.errstate(all="raise"):
        assert find_discounts(np.array([1, 1, 2]), Katz()) == pytest.approx([0, FALLBACK[0]])
