"""Search under CTC: from what every position writes to the tokens of a sentence.

A decoder trained with CTC predicts a token or a blank (the id of padding) at all positions at once.
To *collapse* such an alignment, merge equal neighbours and then delete the blanks, in this order:

    a a ∅ a b b ∅   →   a ∅ a b ∅   →   a a b         (blanks deleted first would give a b)

*Best path* takes the most probable symbol at every position: one alignment, found without search.
But a sentence has many alignments, and its probability is their sum. *Prefix beam search* goes
through the positions with the best prefixes of sentences; alignments that collapse to the same
prefix share one entry with two log-probabilities, since what may follow depends on the last symbol:

    blank    the prefix is written and the position holds a blank
    label    the position holds the prefix's last token

At the next position, with log p of the blank and of the k most probable tokens, each prefix stays
(a blank; or its last token once more, which is merged) or grows by a token w:

    blank'(y)  = (blank(y) ⊕ label(y)) + log p(∅)              ⊕: log-add-exp
    label'(y)  = label(y) + log p(last token of y)
    label'(yw) ⊕= (blank(y) ⊕ label(y)) + log p(w)             from blank(y) alone if y ends with w

and the best prefixes by their sum are kept. A language model is fused by adding `weight` times its
log-probability of each token, and a bonus for each token, to the score by which prefixes are
ordered. All alignments that passed through kept prefixes and the k tokens are counted, so a
hypothesis has at most its true log-probability, and exactly that if nothing was pruned.

Papers: Graves et al. 2006 (prefix search); Hannun et al. 2014 (with a language model); Libovický &
Helcl 2018. Tested against the sum over all alignments of all sentences of small cases, with and
without a language model.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.parallel.language_fusion import Prefix, PrefixModel
from headwise.decoding.search.candidates import take_best
from headwise.text.tokenizer import PAD

BLANK = PAD


@dataclass(frozen=True)
class CtcPath:
    """The sentence of one alignment."""

    tokens: Prefix
    token_log_probabilities: tuple[float, ...]
    """For each token the highest log-probability among the positions merged into it."""
    log_probability: float
    """Of the alignment, blanks included."""
    alignment: Prefix = ()
    """The symbol of each position; empty if no alignment writes the sentence."""
    alignment_log_probabilities: tuple[float, ...] = ()


@dataclass(frozen=True)
class CtcHypothesis:
    """A sentence that prefix beam search found."""

    tokens: Prefix
    log_probability: float
    """Of all its alignments that were not pruned, without the language model."""
    score: float
    """By which hypotheses are ordered: with the language model and the bonus."""


@dataclass(frozen=True)
class Fusion:
    """score(y) = log p_CTC(y) + weight · log p_model(y) + token_bonus · |y|"""

    model: PrefixModel | None = None
    weight: float = 1.0
    token_bonus: float = 0.0
    """A language model lowers the score with each token; the bonus makes up for it."""
    end: int | None = None
    """The token with which the language model ends a sentence, counted when the search is done."""


class TopTokens(NamedTuple):
    """What one sentence offers at each position: the blank and the most probable tokens."""

    blank: Sequence[float]
    tokens: Sequence[Sequence[int]]
    log_probabilities: Sequence[Sequence[float]]


def collapse(alignment: Sequence[int]) -> Prefix:
    """Merge equal neighbours, then delete blanks."""
    return tuple(token for token, _ in groupby(alignment) if token != BLANK)


def read_path(alignment: Sequence[int], log_probabilities: Sequence[float]) -> CtcPath:
    """The sentence of an alignment, given as a token and its log-probability for each position."""
    tokens, highest = [], []
    places = zip(alignment, log_probabilities, strict=True)
    for token, run in groupby(places, key=lambda place: place[0]):
        if token != BLANK:
            tokens.append(token)
            highest.append(max(value for _, value in run))
    return CtcPath(
        tuple(tokens),
        tuple(highest),
        math.fsum(log_probabilities),
        tuple(alignment),
        tuple(log_probabilities),
    )


def best_paths(
    tokens: Int[Tensor, "sentence position"],
    log_probabilities: Float[Tensor, "sentence position"],
    *,
    position_count: Int[Tensor, " sentence"],
) -> list[CtcPath]:
    """The sentences of the most probable alignments, from the best token of each position."""
    rows = zip(tokens.tolist(), log_probabilities.tolist(), position_count.tolist(), strict=True)
    return [read_path(alignment[:count], values[:count]) for alignment, values, count in rows]


def prune_tokens(
    log_probabilities: Float[Tensor, "sentence position vocab"],
    *,
    position_count: Int[Tensor, " sentence"],
    count: int,
    excluded: Sequence[int] = (),
) -> list[TopTokens]:
    """The blank and the `count` most probable other tokens of each position, best first.

    This looks at the whole vocabulary, for all sentences at once and where the table lies; the
    search then reads a few numbers for each position. `excluded` tokens are never written.
    """
    num_sentences, num_positions, vocab = log_probabilities.shape
    outside = torch.tensor([BLANK, *excluded], device=log_probabilities.device)
    count = min(count, vocab - len(outside.unique()))
    written = log_probabilities.flatten(0, 1).index_fill(1, outside, -torch.inf)
    values, tokens = take_best(written, count)
    shape = (num_sentences, num_positions, count)
    rows = zip(
        log_probabilities[..., BLANK].tolist(),
        tokens.view(shape).tolist(),
        values.view(shape).tolist(),
        position_count.tolist(),
        strict=True,
    )
    return [TopTokens(blank[:n], token[:n], value[:n]) for blank, token, value, n in rows]


def prefix_beam_search(
    top: TopTokens, *, size: int, fusion: Fusion | None = None
) -> tuple[CtcHypothesis, ...]:
    """The `size` best sentences that the search found, best first.

    One pass over the positions, `size` · k extensions at each, in Python on the host.
    """
    scorer = _Scorer(fusion or Fusion())
    beam: _Beam = {(): _Entry(blank=0.0)}
    for blank, tokens, values in zip(*top, strict=True):
        scorer.prepare(beam, tokens)
        beam = _advance(beam, blank, dict(zip(tokens, values, strict=True)))
        beam = scorer.keep_best(beam, size)
    return scorer.finish(beam)


def align(tokens: Sequence[int], top: TopTokens) -> CtcPath:
    """The most probable alignment of a given sentence (Viterbi): how probable its tokens are where
    they are written; minus infinity if these positions cannot write it."""
    written: list[_Way] = [(0.0, ())] + [NO_WAY] * len(tokens)
    blank, label = written, [NO_WAY] * (1 + len(tokens))
    for blank_value, offered, values in zip(*top, strict=True):
        value_of = dict(zip(offered, values, strict=True))
        lengthened = [NO_WAY]
        for j, token in enumerate(tokens):
            entering = blank[j] if j > 0 and tokens[j - 1] == token else written[j]
            way = max(label[j + 1], entering)
            lengthened.append(_go_on(way, token, value_of.get(token, -math.inf)))
        blank, label = [_go_on(way, BLANK, blank_value) for way in written], lengthened
        written = [max(ways) for ways in zip(blank, label, strict=True)]
    total, places = written[-1]
    if total == -math.inf:
        return CtcPath(tuple(tokens), (-math.inf,) * len(tokens), total)
    return read_path([token for token, _ in places], [value for _, value in places])


_Way = tuple[float, tuple[tuple[int, float], ...]]
"""A log-probability, and the token and its own log-probability at each position so far."""
NO_WAY: _Way = (-math.inf, ())


def _go_on(way: _Way, token: int, value: float) -> _Way:
    return way[0] + value, (*way[1], (token, value))


@dataclass(slots=True)
class _Entry:
    """The log-probabilities of a prefix at the present position, by what the position holds."""

    blank: float = -math.inf
    label: float = -math.inf

    @property
    def total(self) -> float:
        return _log_add(self.blank, self.label)


_Beam = dict[Prefix, _Entry]


def _advance(beam: _Beam, blank: float, offered: dict[int, float]) -> _Beam:
    """All prefixes at the next position, which offers the blank and these tokens."""
    grown: _Beam = {}
    for prefix, entry in beam.items():
        total, last = entry.total, prefix[-1] if prefix else BLANK
        staying = grown.setdefault(prefix, _Entry())
        staying.blank = total + blank
        if last in offered:
            staying.label = _log_add(staying.label, entry.label + offered[last])
        for token, value in offered.items():
            longer = grown.setdefault((*prefix, token), _Entry())
            # An equal neighbour would be merged, unless a blank stands between.
            source = entry.blank if token == last else total
            longer.label = _log_add(longer.label, source + value)
    return grown


class _Scorer:
    """What is added to the log-probability of a prefix to order it: language model and bonus."""

    def __init__(self, fusion: Fusion) -> None:
        self._fusion = fusion
        self._added: dict[Prefix, float] = {(): 0.0}

    def prepare(self, beam: _Beam, tokens: Sequence[int]) -> None:
        """Ask the language model, once for a position, about all extensions of the beam."""
        prefixes, bonus = list(beam), self._fusion.token_bonus
        for prefix, row in zip(prefixes, self._ask(prefixes, tokens), strict=True):
            before = self._added[prefix] + bonus
            for token, value in zip(tokens, row, strict=True):
                self._added[*prefix, token] = before + value

    def keep_best(self, beam: _Beam, size: int) -> _Beam:
        return dict(heapq.nlargest(size, beam.items(), key=self._score))

    def finish(self, beam: _Beam) -> tuple[CtcHypothesis, ...]:
        """The hypotheses, best first; the language model ends each sentence, if it can."""
        prefixes, ends = list(beam), [[0.0]] * len(beam)
        if self._fusion.end is not None:
            ends = self._ask(prefixes, [self._fusion.end])
        found = [
            CtcHypothesis(prefix, entry.total, self._score((prefix, entry)) + end)
            for (prefix, entry), (end,) in zip(beam.items(), ends, strict=True)
        ]
        return tuple(sorted(found, key=lambda hypothesis: -hypothesis.score))

    def _score(self, item: tuple[Prefix, _Entry]) -> float:
        prefix, entry = item
        return entry.total + self._added[prefix]

    def _ask(self, prefixes: Sequence[Prefix], tokens: Sequence[int]) -> list[list[float]]:
        """weight · log p(token | prefix); zeros without a model."""
        if self._fusion.model is None:
            return [[0.0] * len(tokens)] * len(prefixes)
        weight = self._fusion.weight
        rows = self._fusion.model.score_next(prefixes, tokens)
        return [[weight * value for value in row] for row in rows]


def _log_add(a: float, b: float) -> float:
    """log(exp a + exp b)"""
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))
