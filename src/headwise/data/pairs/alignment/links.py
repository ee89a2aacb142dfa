"""Links each target token to the source token that it most likely translates, and counts the links
of each source token (its fertility).

    a_j = argmax_i p(i | j) · t(y_j | x_i)           f_i = |{j : a_j = i}|

Each target token is linked to one source token, so the fertilities of a source sum to the length of
its target: exactly what a decoder needs that copies each source token as often as its fertility
says. For a comparison with links of annotators a target token may have none
(`without_source=True`): where the probability of no source token is greater than that of the best.

Gu et al. 2018 (fertilities from an external aligner). Tested against: loops over single pairs; sums
of fertilities are target lengths.
"""

import numpy as np

from headwise.data.pairs.alignment.cells import BLOCK_CELLS, Shapes, cut_pairs, lay_out_cells
from headwise.data.pairs.alignment.diagonal_prior import DiagonalPrior
from headwise.data.pairs.alignment.lexical_table import LexicalTable
from headwise.data.shards import Ragged

NO_SOURCE = -1


def link_targets(
    table: LexicalTable, source: Ragged, target: Ragged, *, without_source: bool = False
) -> Ragged:
    """For each target token the index of its source token; of equally likely ones the first."""
    shapes = Shapes.of(source.lengths, target.lengths)
    prior = DiagonalPrior(shapes).probabilities(table.tension)
    found = [np.zeros(0, dtype=np.int64)]
    for block in cut_pairs(source.lengths, target.lengths, cells=BLOCK_CELLS):
        cells = lay_out_cells(_take(source, block), _take(target, block), shapes)
        score = table.look_up(cells.source, cells.target) * prior[cells.shape_cell]
        best = np.maximum.reduceat(score, cells.first_cell)
        token = np.repeat(np.arange(len(best)), cells.num_cells)
        hits = np.flatnonzero(score == best[token])
        first = hits[np.unique(token[hits], return_index=True)[1]]
        links = cells.place[first]
        if without_source:
            none = table.null_probability * table.null[cells.target_tokens]
            links = np.where(none > (1 - table.null_probability) * best, NO_SOURCE, links)
        found.append(links)
    return Ragged(np.concatenate(found), target.lengths)


def _take(side: Ragged, block: np.ndarray) -> Ragged:
    """The sequences of a block of consecutive numbers."""
    ends = np.cumsum(side.lengths)
    begin = ends[block[0]] - side.lengths[block[0]]
    return Ragged(side.tokens[begin : ends[block[-1]]], side.lengths[block])


def count_fertilities(links: Ragged, source_lengths: np.ndarray) -> Ragged:
    """How many target tokens each source token is linked to."""
    begin = np.repeat(np.cumsum(source_lengths) - source_lengths, links.lengths)
    linked = links.tokens != NO_SOURCE
    counts = np.bincount((begin + links.tokens)[linked], minlength=int(source_lengths.sum()))
    return Ragged(counts, source_lengths)
