"""Draws samples of a training without replacement: all translations of a source are different.

A translation y with log-probability φ gets a random key G = φ + Gumbel noise. The translations with
the k largest keys are k draws without replacement, in their order (the Gumbel-top-k trick; Vieira
2014). There are too many translations to give each a key, but the largest key in a subtree of
prefixes has a distribution that is known: it is Gumbel, located at the log-probability of the
prefix. So keys are drawn from the root downwards (stochastic beam search, Kool et al. 2019):

    root        G ~ Gumbel(0)
    children    G̃_c ~ Gumbel(φ_c), then moved so that their maximum is the G of the parent:
                G_c = -log(exp(-G) - exp(-max G̃) + exp(-G̃_c))
    beam        the k + 1 largest keys among the children of all rows

A prefix whose key is not among the largest has no translation whose key is. So the beam at the end
holds the true k + 1 largest keys. The last of them is the threshold κ. Given κ, translation y is
among the k others with probability

    q = P(G > κ) = 1 - exp(-exp(φ - κ))

which is what an estimator divides by (training/sequence/distinct.py). One more row follows the most
probable tokens, as in samples.py. A temperature acts on the distribution that is drawn from; values
in the tables are log-probabilities at temperature 1. Where there are fewer translations than k, all
of them are found, and κ is -inf.

Tested against: sequential draws without replacement by enumeration; log-probabilities of whole
targets; unbiased estimates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.decoding.engines.plain import OnResult, run_plainly
from headwise.decoding.generator import NO_WATCHER
from headwise.decoding.results import PathTables, SearchResult
from headwise.decoding.rules.constraints import Constraints, SentenceRules
from headwise.decoding.search.samples import without_special
from headwise.decoding.search.sampling import SamplingSettings
from headwise.decoding.stepper import Stepper
from headwise.randomness import torch_generator
from headwise.text.tokenizer import EOS


@dataclass(frozen=True)
class DistinctSamples:
    """The greedy output of each source and its samples, by falling keys."""

    paths: PathTables
    log_probability: Float[np.ndarray, "sentence sample"]
    """Of the distribution that they were drawn from; -inf where there are fewer samples."""
    log_inclusion: Float[np.ndarray, "sentence sample"]
    """log q: of being among the samples, given the threshold."""


def draw_distinct_samples(
    stepper: Stepper[Any],
    sources: Sequence[Sequence[int]],
    *,
    count: int,
    temperature: float,
    seed: int,
    limits: Sequence[int],
    prefixes: Sequence[Sequence[int]] | None = None,
) -> DistinctSamples:
    """At most `count` different samples of each source, which must not be empty."""
    settings = SamplingSettings(num_samples=count + 2, temperature=temperature, seed=seed)
    prefixes = [()] * len(sources) if prefixes is None else prefixes
    rules = [SentenceRules(tuple(one)) for one in prefixes]
    search = _DistinctSearch(settings, rules, limits=limits, device=stepper.device)
    run_plainly(without_special(stepper), sources, search, NO_WATCHER)
    return search.samples()


class _DistinctSearch:
    """Row 0 of a sentence is greedy; the others are a beam of prefixes with keys."""

    needs_attention = False

    def __init__(
        self,
        settings: SamplingSettings,
        rules: Sequence[SentenceRules],
        *,
        limits: Sequence[int],
        device: torch.device,
    ) -> None:
        self.width, self.longest = settings.num_hypotheses, max(limits)
        self._temperature, self._limits = settings.temperature, limits
        self._constraints = Constraints(
            settings, rules, limits=limits, width=self.width, device=device
        )
        self._generator = torch_generator(settings.seed, "distinct samples", device=device)
        self._alive = torch.arange(len(limits), device=device)
        shape = (len(limits), self.width)
        self._tokens = torch.full((*shape, self.longest), EOS, device=device)
        self._values = torch.zeros(*shape, self.longest, dtype=torch.float64, device=device)
        self._total = torch.full(shape, -torch.inf, dtype=torch.float64, device=device)
        self._total[:, :2] = 0
        self._key = self._total.clone()
        self._key[:, 1] = self._gumbel(self._key[:, 1])
        self._ended = torch.zeros(shape, dtype=torch.bool, device=device)
        self._ended[:, 2:] = True  # rows that hold no prefix yet

    @property
    def done(self) -> Tensor:
        return self._ended[self._alive].all(-1)

    def add_attention(self, attention: Tensor) -> None:
        raise AssertionError("samples need no attention")

    def choose(self, scores: Tensor, step: int) -> tuple[Tensor, Tensor]:
        here = self._alive
        scores = self._constraints.mask(scores).double().view(len(here), self.width, -1)
        drawn_from = (scores / self._temperature).log_softmax(-1)
        # What has ended, and what is cut off, goes on by itself with a padding of certainty.
        ended = self._ended[here]
        only_end = torch.full_like(scores[:1, :1], -torch.inf).index_fill(-1, self._end, 0)
        scores = torch.where(ended[..., None], only_end, scores)
        drawn_from = torch.where(ended[..., None], only_end, drawn_from)
        total = self._total[here, 1:, None] + drawn_from[:, 1:]
        key = condition_on_maximum(self._gumbel(total), self._key[here, 1:])
        best = scores[:, :1].argmax(-1)
        keys, places = key.flatten(1).topk(self.width - 1, dim=-1)
        row = torch.cat([torch.zeros_like(best), 1 + places // scores.shape[-1]], dim=1)
        tokens = torch.cat([best, places % scores.shape[-1]], dim=1)
        self._continue(row, tokens, scores, step)
        self._key[here, 1:] = keys
        self._total[here, 1:] = total.flatten(1).gather(1, places)
        at_limit = (self._constraints.limits == step + 1)[:, None]
        empty = torch.cat([torch.zeros_like(ended[:, :1]), keys == -torch.inf], dim=1)
        self._ended[here] = ended.gather(1, row) | (tokens == EOS) | at_limit | empty
        first = torch.arange(len(here), device=row.device)[:, None] * self.width
        return tokens.flatten(), (first + row).flatten()

    @property
    def _end(self) -> Int[Tensor, "1"]:
        return torch.tensor([EOS], device=self._tokens.device)

    def _continue(self, row: Tensor, tokens: Tensor, scores: Tensor, step: int) -> None:
        """New row i holds what row[i] has written, and its token."""
        here, index = self._alive, row[..., None].expand(-1, -1, self.longest)
        value = scores.flatten(1).gather(1, row * scores.shape[-1] + tokens)
        for table, new in ((self._tokens, tokens), (self._values, value)):
            moved = table[here].gather(1, index)
            moved[..., step] = new
            table[here] = moved

    def drop_done(
        self, tokens: Tensor, index: Tensor | None, on_result: OnResult | None
    ) -> tuple[Tensor, Tensor]:
        assert index is not None
        kept = torch.nonzero(~self.done)[:, 0]
        self._alive = self._alive[kept]
        self._constraints.keep(kept)
        return tokens.view(-1, self.width)[kept].view(-1), index.view(-1, self.width)[kept].view(-1)

    def advance(self, tokens: Tensor, index: Tensor | None) -> None:
        self._constraints.advance(tokens, index=index)

    def finish(self) -> list[SearchResult]:
        return []

    def samples(self) -> DistinctSamples:
        """The rows of the beam but the last, whose key is the threshold."""
        tokens, values = (
            one[:, :-1].permute(2, 0, 1).cpu().numpy() for one in (self._tokens, self._values)
        )
        total, threshold = self._total[:, 1:-1], self._key[:, -1:]
        # log(1 - exp(-x)) with x = exp(φ - κ); x itself where it is tiny.
        distance = (total - threshold).masked_fill(threshold == -torch.inf, torch.inf)
        exact = (-torch.expm1(-distance.exp())).log()
        inclusion = torch.where(distance < -30, distance, exact)
        paths = PathTables.of(tokens, values, limits=self._limits)
        return DistinctSamples(paths, total.cpu().numpy(), inclusion.cpu().numpy())

    def _gumbel(self, location: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        noise = torch.empty_like(location).exponential_(generator=self._generator)
        return location - noise.log()


def condition_on_maximum(
    key: Float[Tensor, "sentence row vocab"], maximum: Float[Tensor, "sentence row"]
) -> Float[Tensor, "sentence row vocab"]:
    """Gumbel keys moved monotonically so that the largest is `maximum`; -inf stays -inf.

    -log(exp(-G) - exp(-Z) + exp(-g)) for key g, largest key Z and maximum G, without overflow
    (appendix B.3 of the paper).
    """
    largest = key.amax(-1, keepdim=True)
    wanted = maximum[..., None]
    below = key - largest  # 0 for the largest
    gap = wanted - key + torch.log1p(-below.exp())
    moved = wanted - gap.clamp(min=0) - torch.log1p((-gap.abs()).exp())
    moved = torch.where(below == 0, wanted, moved)
    return moved.masked_fill((key == -torch.inf) | (wanted == -torch.inf), -torch.inf)
