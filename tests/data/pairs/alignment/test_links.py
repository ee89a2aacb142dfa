"""Links and fertilities against loops over single pairs."""

import math

import numpy as np

from headwise.data.pairs.alignment.aligner import fit_aligner
from headwise.data.pairs.alignment.lexical_table import UNSEEN, LexicalTable
from headwise.data.pairs.alignment.links import NO_SOURCE, count_fertilities, link_targets
from headwise.data.shards import as_ragged
from tests.data.pairs.alignment.pairs import draw_pairs


def test_links_are_the_best_of_each_target_token() -> None:
    pairs = draw_pairs(37, words=11, longest=7, seed=11)
    table = fit_aligner(pairs, num_targets=15)
    fresh = draw_pairs(19, words=11, longest=7, seed=12)
    links = link_targets(table, as_ragged(fresh.source), as_ragged(fresh.target))
    with_none = link_targets(
        table, as_ragged(fresh.source), as_ragged(fresh.target), without_source=True
    )
    known = dict(zip(table.keys.tolist(), table.probabilities.tolist(), strict=True))
    num_none = 0
    for xs, ys, found, other in zip(
        fresh.source, fresh.target, links.split(), with_none.split(), strict=True
    ):
        for j, y in enumerate(ys):
            near = [
                math.exp(-2 * abs((j + 1) / len(ys) - (i + 1) / len(xs))) for i in range(len(xs))
            ]
            scores = [
                weight / sum(near) * known.get(x * 15 + y, UNSEEN)
                for x, weight in zip(xs, near, strict=True)
            ]
            assert math.isclose(scores[found[j]], max(scores), rel_tol=1e-9)
            none = 0.08 * table.null[y] > 0.92 * max(scores)
            assert other[j] == (NO_SOURCE if none else found[j])
            num_none += none
    assert 0 < num_none < len(links.tokens)


def test_fertilities_sum_to_the_length_of_the_target() -> None:
    pairs = draw_pairs(37, words=11, longest=7, seed=13)
    table = fit_aligner(pairs, num_targets=15)
    source, target = as_ragged(pairs.source), as_ragged(pairs.target)
    links = link_targets(table, source, target)
    fertilities = count_fertilities(links, source.lengths)
    for found, counted, ys in zip(links.split(), fertilities.split(), pairs.target, strict=True):
        assert counted.tolist() == [found.tolist().count(i) for i in range(len(counted))]
        assert counted.sum() == len(ys)


def test_of_equally_likely_source_tokens_the_first_is_linked() -> None:
    table = LexicalTable(np.array([5]), np.array([0.5]), np.full(11, 0.1), 0.0, 0.0)
    links = link_targets(table, as_ragged([[7, 7, 7]]), as_ragged([[8, 9]]))
    assert links.tokens.tolist() == [0, 0]
