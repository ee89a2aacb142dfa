"""`LanguageModel`: a language model of any kind with text as input, for probabilities of sentences
and next words.

    total log-probability   log p(w₁ … wₘ </s>) = Σ log p(wᵢ | w₁ … wᵢ₋₁)
    perplexity              exp(-total / (m + 1)): the number of equally likely words that would be
                            as hard to predict

The end of the sentence counts as a word. n-gram, neural n-gram, LSTM and Transformer all implement
`TokenModel`, so they can be compared.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from headwise.data.shards import as_ragged
from headwise.data.text.text_batches import join_lines
from headwise.data.text_lines import MAX_LINE_BYTES
from headwise.errors import UsageError
from headwise.models.choices import LanguageModelSettings
from headwise.models.ngram import NgramModel, NgramSettings
from headwise.models.ngram.arpa import is_arpa, read_arpa
from headwise.models.ngram.choices import StupidBackoff
from headwise.tasks.arguments import require_path, require_text, require_texts
from headwise.tasks.language.answers import (
    LineScores,
    Prediction,
    SentenceScore,
    TextScore,
    TokenScore,
)
from headwise.tasks.language.bundle import load_language_bundle
from headwise.text.character_tokenizer import CharacterTokenizer
from headwise.text.tokenizer import (
    EOS,
    SPECIAL_PIECES,
    UNKNOWN,
    WORD_START,
    FlatTokenizer,
    Tokenizer,
)
from headwise.text.vocabulary import Vocabulary
from headwise.text.word_tokenizer import WordTokenizer

GAP = re.compile(r"_{2,}|＿+")
"""What marks the word to be filled in: ____ or ＿＿; dots are punctuation."""
MIN_BEAM = 16
MAX_CANDIDATES = 1 << 27
"""Continuations weighed at once: beginnings times words of the vocabulary, about 1.5 GB of
numbers."""
BLOCK = 1 << 14
PART = 1 << 11
"""Lines of a block that are scored together: their arrays stay in the processor's cache."""


class TokenModel(Protocol):
    """What is asked of a language model, in token ids; logarithms are natural."""

    def score(self, sentences: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        """Of each sentence the log-probability of each token, and of its end: one number more than
        it has tokens.
        """
        ...

    def next_words(self, prefixes: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Log-probabilities of every token after each beginning of a sentence, [prefix,
        vocabulary].
        """
        ...


@runtime_checkable
class StreamModel(Protocol):
    """A model that can also read on from line to line."""

    def score_running(self, text: NDArray[np.int64]) -> NDArray[np.float32]:
        """Log-probabilities of every token of one text but the first, from all before it."""
        ...


@runtime_checkable
class FlatModel(Protocol):
    """A model that can also score many sentences in one array, in several threads at once."""

    def score_flat(
        self, tokens: NDArray[np.int32], lengths: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Log-probabilities of every token of every sentence and of its end, in a row."""
        ...


class LanguageModel:
    """A tokenizer and a model of tokens; `sums_to_one`: what it gives are probabilities;
    `settings`: the `model` section of its recipe, None where there is no recipe (an ARPA file).
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        model: TokenModel,
        *,
        sums_to_one: bool = True,
        settings: LanguageModelSettings | None = None,
    ) -> None:
        self.tokenizer, self.model, self.sums_to_one = tokenizer, model, sums_to_one
        self.settings = settings

    @staticmethod
    def load(path: Path | str) -> "LanguageModel":
        """A bundle, a run directory, or an ARPA file (plain, .gz or .xz)."""
        found = require_path(path, "path", "runs/ptb/model")
        if is_arpa(found):
            arpa = read_arpa(found)
            vocabulary = Vocabulary(arpa.words)
            in_words = arpa.units == "words"
            tokenizer = (
                WordTokenizer(vocabulary, lowercase=False)
                if in_words
                else CharacterTokenizer(vocabulary)
            )
            return LanguageModel(tokenizer, NgramModel(arpa.tables))
        bundle = load_language_bundle(found)
        settings = bundle.recipe.model
        is_stupid = isinstance(settings, NgramSettings) and isinstance(
            settings.smoothing, StupidBackoff
        )
        return LanguageModel(
            bundle.tokenizer, bundle.model, sums_to_one=not is_stupid, settings=settings
        )

    def score(self, texts: Sequence[str]) -> list[SentenceScore]:
        """Every token of every sentence, and its end."""
        encoded = self.tokenizer.encode_batch(check_sentences(texts))
        scored = []
        for text, ids, scores in zip(texts, encoded, self.model.score(encoded), strict=True):
            names = [*self.tokenizer.pieces(ids), SPECIAL_PIECES[EOS]]
            known = [*(number != UNKNOWN for number in ids), True]
            rows = zip(names, scores.tolist(), known, strict=True)
            scored.append(SentenceScore(text, tuple(TokenScore(*row) for row in rows)))
        return scored

    def score_text(
        self,
        lines: Iterable[str],
        *,
        continuous: bool = False,
        line_scores: LineScores | None = None,
    ) -> TextScore:
        """The score of a text of any length, without the scores of its tokens. `continuous`: the
        lines are read as one text, each after all lines before it. `line_scores` gets the sum of
        each line.
        """
        tell = LineScores() if line_scores is None else line_scores
        if continuous:
            return self._score_continuous(lines, tell)
        if isinstance(self.tokenizer, FlatTokenizer) and isinstance(self.model, FlatModel):
            return _score_flat(self.tokenizer, self.model, lines, tell)
        predictions, unknown, total = 0, 0, 0.0
        for block in _blocks(lines):
            encoded = self.tokenizer.encode_batch(block)
            scores = self.model.score(encoded)
            predictions += sum(map(len, scores))
            unknown += sum(ids.count(UNKNOWN) for ids in encoded)
            flat = np.concatenate(scores)
            tell.add(flat, np.array([len(one) for one in scores]))
            total += float(flat.sum(dtype=np.float64))
        return TextScore(predictions, unknown, total)

    def _score_continuous(self, lines: Iterable[str], tell: LineScores) -> TextScore:
        if not isinstance(self.model, StreamModel):
            raise UsageError(
                "this model reads sentences one by one and remembers nothing of the line before; "
                "leave `continuous` away",
                "该模型逐句阅读，不记得上一行；请去掉 `continuous`",
            )
        encoded = [ids for block in _blocks(lines) for ids in self.tokenizer.encode_batch(block)]
        scores = self.model.score_running(join_lines(as_ragged(encoded)))
        tell.add(scores, np.array([len(ids) + 1 for ids in encoded]))
        return TextScore(
            len(scores),
            sum(ids.count(UNKNOWN) for ids in encoded),
            float(scores.sum(dtype=np.float64)),
        )

    def predict(self, beginning: str, *, count: int = 5, length: int = 1) -> list[Prediction]:
        """The `count` likeliest continuations of at most `length` tokens; a gap (____) at the end
        is dropped.
        """
        prefix = self.tokenizer.encode(cut_gap(beginning))
        width = max(count, MIN_BEAM) if length > 1 else count
        running: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        finished: list[tuple[float, tuple[int, ...]]] = []
        for _ in range(length):
            finished = sorted(finished, reverse=True)[:count]
            # A continuation only loses by going on: what is behind all that have ended stays there.
            if not running or (len(finished) == count and finished[-1][0] >= max(running)[0]):
                break
            self._require_room(len(running), count)
            rows = self.model.next_words([[*prefix, *words] for _, words in running])
            scores = rows.astype(np.float64) + np.array([[score] for score, _ in running])
            best = np.argpartition(scores, -min(width, scores.size), axis=None)[-width:]
            chosen = [
                (float(scores.flat[flat]), divmod(int(flat), scores.shape[1])) for flat in best
            ]
            grown = [
                (score, (*running[row][1], token))
                for score, (row, token) in chosen
                if score > -math.inf
            ]
            finished += [one for one in grown if one[1][-1] == EOS]
            running = [one for one in grown if one[1][-1] != EOS]
        return [
            self._prediction(*one) for one in sorted([*finished, *running], reverse=True)[:count]
        ]

    def _require_room(self, num_running: int, count: int) -> None:
        most = max(1, MAX_CANDIDATES // self.tokenizer.size)
        if num_running > most:
            raise UsageError(
                f"the {count:,} likeliest continuations of several tokens are more than can be "
                f"weighed at once ({most:,} with {self.tokenizer.size:,} words); ask for fewer, "
                "or for one token each",
                f"要找 {count:,} 个由多个词元组成的最可能后续，超出一次能比较的数量（词表 "
                f"{self.tokenizer.size:,} 个词时为 {most:,}）；请少要一些，或每个只取一个词元",
            )

    def _prediction(self, score: float, ids: tuple[int, ...]) -> Prediction:
        pieces = self.tokenizer.pieces(ids)
        words = ids[:-1] if ids[-1] == EOS else ids
        text = (
            self.tokenizer.decode(words) if UNKNOWN not in words else " ".join(pieces[: len(words)])
        )
        if (
            words and not text
        ):  # a decoder that drops spaces at the ends is asked for nothing but a space
            text = "".join(pieces[: len(words)]).replace(WORD_START, " ")
        ending = () if ids[-1] != EOS else (SPECIAL_PIECES[EOS],)
        return Prediction(" ".join([*([text] if words else ()), *ending]), tuple(pieces), score)


def _score_flat(
    tokenizer: FlatTokenizer, model: FlatModel, lines: Iterable[str], tell: LineScores
) -> TextScore:
    """Parts of a block each in a thread: numbers are looked up and asked for outside the
    interpreter.
    """

    def score_part(part: list[str]) -> tuple[NDArray[np.float32], NDArray[np.int64], int, float]:
        tokens, lengths = tokenizer.encode_flat(part)
        scores = model.score_flat(tokens, lengths)
        unseen = int((tokens == UNKNOWN).sum())
        return scores, lengths + 1, unseen, float(scores.sum(dtype=np.float64))

    predictions, unknown, total = 0, 0, 0.0
    tokenizer.encode_flat([])  # what it needs is made once, before several threads ask
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
        for block in _blocks(lines):
            parts = [block[first : first + PART] for first in range(0, len(block), PART)]
            for scores, counts, unseen, score in threads.map(score_part, parts):
                tell.add(scores, counts)
                predictions += len(scores)
                unknown, total = unknown + unseen, total + score
    return TextScore(predictions, unknown, total)


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(lines)
    while block := list(islice(remaining, BLOCK)):
        yield block


def check_sentences(texts: Sequence[str]) -> list[str]:
    """Sentences that a caller hands in, without space around them; one that is no sentence by its
    length is refused.
    """
    for text in require_texts(texts, "texts"):
        if len(text) > MAX_LINE_BYTES:
            raise UsageError(
                f"a sentence of {len(text):,} characters is longer than the {MAX_LINE_BYTES:,} "
                "allowed; give one sentence at a time, or a file with one on each line",
                f"句子长达 {len(text):,} 个字符，超过允许的 {MAX_LINE_BYTES:,}；请一次给一句，"
                "或给出每行一句的文件",
            )
    return [text.strip() for text in texts]


def cut_gap(beginning: str) -> str:
    """The text before the gap; a gap may only stand at the end, because these models read from left
    to right.
    """
    gap = GAP.search(require_text(beginning, "beginning"))
    if gap is None:
        return beginning.strip()
    if beginning[gap.end() :].strip(" 。．.？?！!"):
        raise UsageError(
            f"the gap stands before {beginning[gap.end() :].strip()[:40]!r}; a language model "
            "reads from left to right and fills in the end: put ____ last, or compare whole "
            "sentences with `headwise score`",
            f"空格之后还有 {beginning[gap.end() :].strip()[:40]!r}；语言模型从左往右读，"
            "只能补全结尾：请把 ____ 放在最后，或用 `headwise score` 比较完整的句子",
        )
    return beginning[: gap.start()].strip()
