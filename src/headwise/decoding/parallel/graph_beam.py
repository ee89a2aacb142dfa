"""Beam search over the texts of a graph: paths that write the same text are added up.

Many paths can write one text, each with a small probability. A hypothesis is therefore a prefix y
with the probabilities α_y(k) that a walk has written y and stands at vertex k:

    α_yw(k)        = p(w | k) · Σ_i α_y(i) P(k | i)
    p(y … )        = Σ_k α_y(k)              ranks prefixes, which all have the same length
    p(y)           = α_y(last vertex)        the text is finished
    score(y)       = (log p(y) + weight · log p_language(y) + bonus · length) / length^exponent

Only the best tokens of each vertex are considered. With a beam that never overflows and all tokens
the result is the best text, not only the best path. The search ends when no prefix can still beat
the finished texts: a longer text is never more probable than its prefix.

Huang et al. 2022 (arXiv 2205.07459), section 3.4, with an n-gram model as there; merging as in the
prefix search of Graves 2012. Tested against: the probability of every text by enumeration.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.parallel.graph import Graph, GraphPath, lookahead_paths
from headwise.decoding.parallel.language_fusion import PrefixModel

_ASKED = 4
"""For each hypothesis kept, continuations that the language model is asked about."""


@dataclass(frozen=True)
class GraphText:
    """A text that the graph writes."""

    path: GraphPath
    """The most probable path that writes it."""
    log_probability: float
    """Of the text: the sum over all of its paths."""
    score: float

    @property
    def tokens(self) -> list[int]:
        return self.path.tokens


@dataclass(frozen=True)
class GraphBeam:
    """How the search goes."""

    size: int = 5
    num_best: int = 1
    length_exponent: float = 1.0
    max_length: int | None = None
    """None: as many tokens as there are vertices."""
    language: PrefixModel | None = None
    language_weight: float = 0.1
    token_bonus: float = 0.0
    """Added for each token, before the sum is divided: without effect with the exponent 1."""


class _Prefix(NamedTuple):
    tokens: tuple[int, ...]
    walks: Float[Tensor, " vertex"]
    """Probabilities of standing at each vertex, divided by their sum."""
    log_probability: float
    language: float


class _FinishedText(NamedTuple):
    score: float
    log_probability: float
    tokens: tuple[int, ...]


class _GraphOfSentence(NamedTuple):
    """One sentence without padding, on the CPU, in fp64."""

    emitted: Float[Tensor, "vertex rank"]
    passed: Float[Tensor, "vertex successor"]
    words: list[int]
    """The distinct tokens of all vertices."""
    word: Int[Tensor, "vertex rank"]
    """Which of them each token is."""


def beam_texts(graph: Graph, beam: GraphBeam) -> list[list[GraphText]]:
    """The best texts of each sentence, best first."""
    fallback = lookahead_paths(graph)
    found = []
    for number, count in enumerate(graph.vertex_count.tolist()):
        words, word = graph.tokens[number, :count].cpu().unique(return_inverse=True)
        sentence = _GraphOfSentence(
            graph.log_probabilities[number, :count].cpu().double().exp(),
            graph.links[number, :count, :count].cpu().double().exp(),
            words.tolist(),
            word,
        )
        finished = _search(sentence, beam)
        texts = [GraphText(_align(sentence, end.tokens), end[1], end[0]) for end in finished]
        if not texts:
            # No text ended within the limit: the path of the quickest search is a text, too.
            path = fallback[number]
            score = path.total / len(path.tokens) ** beam.length_exponent
            texts = [GraphText(path, path.total, score)]
        found.append(texts)
    return found


def _search(sentence: _GraphOfSentence, beam: GraphBeam) -> list[_FinishedText]:
    num_vertices = len(sentence.passed)
    limit = num_vertices if beam.max_length is None else min(beam.max_length, num_vertices)
    start = torch.zeros(num_vertices, dtype=torch.double)
    start[0] = 1.0
    # Before the first token a walk is about to enter vertex 0.
    prefixes = [_Prefix((), start, 0.0, 0.0)]
    finished: list[_FinishedText] = []
    for length in range(1, limit + 1):
        arrived = torch.stack([prefix.walks for prefix in prefixes])
        if length > 1:
            arrived = arrived @ sentence.passed
        prefixes = _extend(sentence, beam, prefixes, arrived, finished)
        finished.sort(key=lambda end: -end.score)
        del finished[beam.num_best :]
        if not prefixes or _is_decided(prefixes, finished, beam, (length, limit)):
            break
    return finished


def _extend(
    sentence: _GraphOfSentence,
    beam: GraphBeam,
    prefixes: list[_Prefix],
    arrived: Float[Tensor, "prefix vertex"],
    finished: list[_FinishedText],
) -> list[_Prefix]:
    """The best prefixes that are one token longer; texts that end are added to `finished`."""
    number_of_words = len(sentence.words)
    # [prefix, vertex, rank]: the walk enters the vertex and writes this token there.
    written = arrived[:, :, None] * sentence.emitted
    known = torch.tensor([[prefix.log_probability] for prefix in prefixes], dtype=torch.double)
    spread = sentence.word.flatten().expand(len(prefixes), -1)
    going = written.new_zeros(len(prefixes), number_of_words).scatter_add(
        1, spread, torch.nn.functional.pad(written[:, :-1], (0, 0, 0, 1)).flatten(1)
    )
    ending = written.new_zeros(len(prefixes), number_of_words).scatter_add(
        1, sentence.word[-1].expand(len(prefixes), -1), written[:, -1]
    )
    ends, longest = (_best(totals.log() + known, beam) for totals in (ending, going))
    language = _ask(sentence, beam, prefixes, [*ends, *longest])
    for total, prefix, word in ends:
        end = _grow(sentence, prefixes[prefix], word, language[prefix, word])
        score = _score(total + beam.language_weight * end.language, len(end.tokens), beam)
        finished.append(_FinishedText(score, total, end.tokens))
    grown = []
    for total, prefix, word in longest:
        longer = _grow(sentence, prefixes[prefix], word, language[prefix, word])
        walks = (written[prefix] * (sentence.word == word)).sum(-1)
        walks[-1] = 0.0
        grown.append(longer._replace(walks=walks / walks.sum(), log_probability=total))
    grown.sort(key=lambda one: -_rank(one, beam))
    return grown[: beam.size]


def _best(totals: Float[Tensor, "prefix word"], beam: GraphBeam) -> list[tuple[float, int, int]]:
    """Log-probability, prefix and word of the best continuations."""
    asked = beam.size if beam.language is None else _ASKED * beam.size
    values, places = totals.flatten().topk(min(max(asked, beam.num_best), totals.numel()))
    return [
        (value, *divmod(place, totals.shape[1]))
        for value, place in zip(values.tolist(), places.tolist(), strict=True)
        if value > -math.inf
    ]


def _ask(
    sentence: _GraphOfSentence,
    beam: GraphBeam,
    prefixes: Sequence[_Prefix],
    wanted: Sequence[tuple[float, int, int]],
) -> dict[tuple[int, int], float]:
    """What the language model says of each continuation (prefix, word), asked for at once."""
    if beam.language is None:
        return {(prefix, word): 0.0 for _, prefix, word in wanted}
    asked = sorted({prefix for _, prefix, _ in wanted})
    words = sorted({word for _, _, word in wanted})
    rows = beam.language.score_next(
        [prefixes[prefix].tokens for prefix in asked], [sentence.words[word] for word in words]
    )
    return {
        (prefix, word): value
        for prefix, row in zip(asked, rows, strict=True)
        for word, value in zip(words, row, strict=True)
    }


def _grow(sentence: _GraphOfSentence, prefix: _Prefix, word: int, language: float) -> _Prefix:
    return prefix._replace(
        tokens=(*prefix.tokens, sentence.words[word]), language=prefix.language + language
    )


def _score(total: float, length: int, beam: GraphBeam) -> float:
    """The score of a text whose log-probabilities have this sum."""
    return (total + beam.token_bonus * length) / length**beam.length_exponent


def _rank(prefix: _Prefix, beam: GraphBeam) -> float:
    return prefix.log_probability + beam.language_weight * prefix.language


def _is_decided(
    prefixes: list[_Prefix],
    finished: list[_FinishedText],
    beam: GraphBeam,
    lengths: tuple[int, int],
) -> bool:
    """Whether no prefix can beat the texts found, at whichever of the lengths that are left."""
    if len(finished) < beam.num_best:
        return False
    length, limit = lengths
    # Log-probabilities only fall with every token, so this is more than any longer text can reach.
    best = _rank(prefixes[0], beam)
    longer = range(length + 1, limit + 1)
    reached = max((_score(best, one, beam) for one in longer), default=-math.inf)
    return reached <= finished[-1].score


def _align(sentence: _GraphOfSentence, tokens: Sequence[int]) -> GraphPath:
    """The most probable path that writes these tokens."""
    links = sentence.passed.log()
    numbers = {token: number for number, token in enumerate(sentence.words)}
    emitted = torch.stack(
        [(sentence.emitted * (sentence.word == numbers[token])).amax(-1).log() for token in tokens]
    )
    scores = [emitted[0].clone()]
    scores[0][1:] = -torch.inf
    for row in emitted[1:]:
        scores.append((scores[-1][:, None] + links).amax(0) + row)
    vertices = [len(links) - 1]
    for score in reversed(scores[:-1]):
        vertices.append(int((score + links[:, vertices[-1]]).argmax()))
    vertices.reverse()
    return GraphPath(
        list(tokens),
        vertices,
        [emitted[place, vertex].item() for place, vertex in enumerate(vertices)],
        [0.0, *(links[i, k].item() for i, k in itertools.pairwise(vertices))],
    )
