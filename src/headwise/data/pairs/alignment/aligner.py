"""Learns word alignment from token ids: IBM Model 2 with a diagonal prior, by EM (fast_align).

Each target token y_j is generated from one source token x_i, or from none. The model has a table
t(y | x) and the prior of `diagonal_prior.py`, in which p₀ is the probability of no source token:

    p(y_j, i) = (1 - p₀) · p(i | j) · t(y_j | x_i)          p(y_j, none) = p₀ · t(y_j | none)

EM: the posteriors of the links are expected counts c(x, y) (E), from which t follows (M):

    t(y | x) = exp ψ(c(x, y) + α) / exp ψ(Σ_y' (c(x, y') + α))

with the digamma function ψ and α = 0.01 (variational Bayes). Small counts lose most of their
probability, so rare source words no longer explain everything. α = 0 gives c / Σ c, under which the
likelihood never falls. The tension of the prior can be fitted in each iteration. It need not help:
on the pocket corpus it makes the text more likely and the links worse
(docs/experiments/translation.md).

All steps are array operations over the cells of `cells.py`, block by block; 8 bytes a cell stay in
memory. Large corpora are represented by pairs at equal distances. Same pairs, same table.

Dyer, Chahuneau & Smith 2013; Brown et al. 1993 (IBM models). Tested against: NLTK's IBM model 1, EM
written with dictionaries, a likelihood that never falls, hand cases, and the word alignment of the
pocket corpus, which is known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from pydantic import Field

from headwise.data.pairs.alignment.cells import (
    BLOCK_CELLS,
    Cells,
    Shapes,
    cut_pairs,
    lay_out_cells,
)
from headwise.data.pairs.alignment.diagonal_prior import DiagonalPrior
from headwise.data.pairs.alignment.lexical_table import LexicalTable, keep_likely
from headwise.data.shards import Ragged
from headwise.settings import Settings


class AlignerSettings(Settings):
    """How the alignment is learned."""

    iterations: int = Field(default=5, ge=1, le=100)
    tension: float = Field(default=2.0, ge=0, le=30)
    """How close to the diagonal links are expected."""
    fit_tension: bool = False
    """Fit the tension in each iteration, instead of keeping it."""
    null_probability: float = Field(default=0.08, ge=0, lt=1)
    """A target token translates no source token with this probability."""
    concentration: float = Field(default=0.01, ge=0, le=1)
    """α; 0: plain relative frequencies."""
    most_cells: int = Field(default=50_000_000, ge=1)
    """Pairs of a source and a target token that are learned from; beyond them pairs are skipped."""


class Pairs(Protocol):
    """What is needed of a token store."""

    @property
    def source_lengths(self) -> np.ndarray: ...

    @property
    def target_lengths(self) -> np.ndarray: ...

    def gather(self, pairs: np.ndarray) -> tuple[Ragged, Ragged]: ...


def fit_aligner(
    pairs: Pairs,
    *,
    num_targets: int,
    settings: AlignerSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
    likelihood: Callable[[float], None] | None = None,
) -> LexicalTable:
    """The table of a corpus, whose target token ids are below `num_targets`.

    `progress` is called with iterations done and of how many, `likelihood` with the log-likelihood
    of the target tokens before each iteration's update.
    """
    settings = settings or AlignerSettings()
    blocks, keys, prior = _read_blocks(pairs, num_targets, settings.most_cells)
    table = np.full(len(keys), 1 / num_targets)
    null = np.full(num_targets, 1 / num_targets)
    tension, of_source = settings.tension, keys // num_targets
    for iteration in range(settings.iterations):
        share = (1 - settings.null_probability) * prior.probabilities(tension)
        counts = _count_links(blocks, table, share, settings.null_probability * null)
        if likelihood is not None:
            likelihood(counts.log_likelihood)
        table = _normalize(counts.pairs, of_source, settings.concentration)
        null = _normalize(
            counts.null, np.zeros(num_targets, dtype=np.int64), settings.concentration
        )
        if settings.fit_tension:
            tension = prior.fit_tension(counts.cells, start=tension)
        if progress is not None:
            progress(iteration + 1, settings.iterations)
    return keep_likely(
        keys, table, null=null, null_probability=settings.null_probability, tension=tension
    )


@dataclass(frozen=True)
class _Block:
    """What EM needs of the cells of some pairs."""

    key: np.ndarray
    """Where the pair of tokens of each cell is in the table."""
    shape_cell: np.ndarray
    target_tokens: np.ndarray
    num_cells: np.ndarray


@dataclass(frozen=True)
class _ExpectedLinks:
    """Expected numbers of links."""

    pairs: np.ndarray
    null: np.ndarray
    cells: np.ndarray
    log_likelihood: float


def _read_blocks(
    pairs: Pairs, num_targets: int, most_cells: int
) -> tuple[list[_Block], np.ndarray, DiagonalPrior]:
    """The cells of the corpus, the sorted pairs of tokens that occur in them, and the prior."""
    lengths = np.asarray(pairs.source_lengths), np.asarray(pairs.target_lengths)
    every = -(-int(lengths[0] @ lengths[1]) // most_cells)
    chosen = np.arange(0, len(lengths[0]), max(1, every))
    source_lengths, target_lengths = (side[chosen] for side in lengths)
    shapes = Shapes.of(source_lengths, target_lengths)
    laid_out: list[tuple[Cells, np.ndarray, np.ndarray]] = []
    for block in cut_pairs(source_lengths, target_lengths, cells=BLOCK_CELLS):
        cells = lay_out_cells(*pairs.gather(chosen[block]), shapes)
        distinct, place = np.unique(
            cells.source.astype(np.int64) * num_targets + cells.target, return_inverse=True
        )
        laid_out.append((_slim(cells), distinct, place.astype(np.int32)))
    keys = np.unique(np.concatenate([distinct for _, distinct, _ in laid_out]))
    blocks = [
        _Block(
            np.searchsorted(keys, distinct).astype(np.int32)[place],
            cells.shape_cell,
            cells.target_tokens,
            cells.num_cells,
        )
        for cells, distinct, place in laid_out
    ]
    return blocks, keys, DiagonalPrior(shapes)


def _slim(cells: Cells) -> Cells:
    """Without the arrays that are no longer needed once the pairs of tokens have numbers."""
    nothing = np.zeros(0, dtype=np.int32)
    return Cells(
        nothing,
        nothing,
        nothing,
        cells.target_tokens,
        cells.num_cells,
        cells.shape_cell.astype(np.int32),
    )


def _count_links(
    blocks: list[_Block], table: np.ndarray, share: np.ndarray, null: np.ndarray
) -> _ExpectedLinks:
    """The E step; `share` is the prior of each cell, `null` p₀ · t(y | none)."""
    pairs, cells = np.zeros_like(table), np.zeros_like(share)
    nothing, log_likelihood = np.zeros_like(null), 0.0
    for block in blocks:
        weight = table[block.key] * share[block.shape_cell]
        first = np.cumsum(block.num_cells) - block.num_cells
        total = np.add.reduceat(weight, first) + null[block.target_tokens]
        weight /= np.repeat(total, block.num_cells)
        pairs += np.bincount(block.key, weight, minlength=len(pairs))
        cells += np.bincount(block.shape_cell, weight, minlength=len(cells))
        nothing += np.bincount(
            block.target_tokens, null[block.target_tokens] / total, minlength=len(nothing)
        )
        log_likelihood += float(np.log(total).sum())
    return _ExpectedLinks(pairs, nothing, cells, log_likelihood)


def _normalize(counts: np.ndarray, group: np.ndarray, concentration: float) -> np.ndarray:
    """The M step: counts to probabilities within each group (the pairs of one source token)."""
    totals = np.bincount(group, counts + concentration)[group]
    if concentration == 0:
        return np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return np.exp(_digamma(counts + concentration) - _digamma(totals))


def _digamma(x: np.ndarray) -> np.ndarray:
    return torch.special.digamma(torch.from_numpy(x)).numpy()
