"""An n-gram language model: the probability of every word given the few words before it.

    p(w₁ … wₘ) = Π p(wᵢ | wᵢ₋ₙ₊₁ … wᵢ₋₁)          Shannon 1948; smoothing: `estimation.py`

All words of a text are looked up at once, from short contexts to long ones. If the n-gram of a word
was seen, the word takes its probability. Otherwise the probability so far is multiplied by the
weight of the context. After the last order every word has the probability of the longest seen
n-gram times the weights of the longer contexts, which is the recursion in `estimation.py`.

Tested against: that recursion word by word, NLTK, sums over the vocabulary, back-off worked out by
hand (ARPA files).
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from headwise.models.ngram.counting import ABSENT, TokenStream
from headwise.models.ngram.lookup import KeyIndex
from headwise.models.ngram.tables import NgramTables
from headwise.text.tokenizer import BOS

Floats = NDArray[np.float32]
CHUNK = 1 << 16
"""Tokens looked up together, so that the arrays stay in the processor's cache."""


class NgramModel:
    """An n-gram model over token ids."""

    def __init__(self, tables: NgramTables) -> None:
        self.tables = tables
        self._indexes = [
            KeyIndex(level.keys, level.probabilities, level.weights) for level in tables.levels
        ]

    @property
    def vocabulary(self) -> int:
        return self.tables.vocabulary

    @property
    def num_parameters(self) -> int:
        """Number of stored probabilities and weights."""
        return sum(len(level.probabilities) + len(level.weights) for level in self.tables.levels)

    def score(self, sentences: Sequence[Sequence[int]]) -> list[Floats]:
        """The natural log-probability of each token of each sentence and of its end."""
        stream = TokenStream.of_sentences(sentences)
        scores = self.score_stream(stream)[stream.places > 0]
        ends = np.cumsum([len(sentence) + 1 for sentence in sentences])
        return np.split(scores, ends[:-1]) if len(sentences) else []

    def score_flat(self, tokens: NDArray[np.int32], lengths: NDArray[np.int64]) -> Floats:
        """The same for all sentences in one array; each sentence is followed by its end."""
        stream = TokenStream.of(tokens, lengths)
        return self.score_stream(stream)[stream.places > 0]

    def score_stream(self, stream: TokenStream) -> Floats:
        """One log-probability for every token of a text; that of `<s>` means nothing."""
        result = np.empty(len(stream.tokens), dtype=np.float32)

        def ask(start: int) -> None:
            # A chunk may begin inside a sentence: the words before it are read along.
            before = min(start, self.tables.order)
            part = slice(start - before, start + CHUNK)
            result[start : start + CHUNK] = self._ask(stream.tokens[part], stream.places[part])[
                before:
            ]

        if len(result) <= CHUNK:
            ask(0)
            return result
        for index in self._indexes[1:]:
            index.build()
        with ThreadPoolExecutor(
            max_workers=os.cpu_count()
        ) as threads:  # waiting for memory needs no interpreter
            for _ in threads.map(ask, range(0, len(result), CHUNK)):
                pass
        return result

    def _ask(self, tokens: NDArray[np.int32], places: NDArray[np.int32]) -> Floats:
        levels, falls_back = self.tables.levels, self.tables.falls_back
        scores = levels[0].probabilities.take(tokens)
        ids, weights = tokens, levels[0].weights.take(tokens)
        for length in range(2, self.tables.order + 1):
            # The end of a sentence is followed by `<s>`, which nothing predicts: such n-grams are
            # not in the table, and no longer ones.
            if not falls_back:
                scores[1:][places[1:] >= length - 1] = self.tables.floor
            at = np.flatnonzero(ids[:-1] != ABSENT)
            contexts = ids.take(at)
            at += 1
            keys = contexts.astype(np.int64)
            keys *= self.vocabulary
            keys += tokens.take(at)
            found, probabilities, own_weights = self._indexes[length - 1].look(keys)
            fallback = weights.take(at - 1)
            if falls_back:
                fallback += scores.take(at)
            scores[at] = np.where(found != ABSENT, probabilities, fallback)
            if length < self.tables.order:
                ids = np.full(len(tokens), ABSENT, dtype=np.int32)
                ids[at] = found
                weights = np.empty(len(tokens), dtype=np.float32)
                weights[at] = own_weights
        return scores

    def next_words(self, prefixes: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Log-probabilities of the whole vocabulary after each prefix, [prefix, vocabulary]."""
        return np.stack([self._next(prefix) for prefix in prefixes])

    def _next(self, prefix: Sequence[int]) -> Floats:
        levels = self.tables.levels
        history = [BOS, *prefix][-(self.tables.order - 1) :] if self.tables.order > 1 else []
        scores = levels[0].probabilities.copy()
        for length in range(1, len(history) + 1):
            context = self._find(history[-length:])
            if not self.tables.falls_back:
                scores[:] = self.tables.floor
            if context == ABSENT:
                continue
            weight = levels[length - 1].weights[context]
            scores = scores + weight if self.tables.falls_back else np.full_like(scores, weight)
            level = levels[length]
            first, last = np.searchsorted(
                level.keys, [context * self.vocabulary, (context + 1) * self.vocabulary]
            )
            words = level.keys[first:last] - context * self.vocabulary
            scores[words] = level.probabilities[first:last]
        scores[: BOS + 1] = -np.inf
        return scores

    def _find(self, words: Sequence[int]) -> int:
        """The id of one n-gram."""
        found = int(words[0])
        for length, word in enumerate(words[1:], start=2):
            key = np.array([found * self.vocabulary + word], dtype=np.int64)
            found = int(self._indexes[length - 1].find(key)[0])
            if found == ABSENT:
                break
        return found
