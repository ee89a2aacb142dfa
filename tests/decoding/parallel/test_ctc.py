import math
from collections.abc import Sequence
from itertools import product

import pytest
import torch
from torch import Tensor

from headwise.decoding.parallel.ctc import (
    CtcHypothesis,
    Fusion,
    Prefix,
    align,
    best_paths,
    collapse,
    prefix_beam_search,
    prune_tokens,
    read_path,
)

VOCAB, POSITIONS = 4, 5
WIDE = 1000
"""More than there are prefixes: nothing is pruned."""


@pytest.fixture
def table(generator: torch.Generator) -> Tensor:
    return torch.randn(POSITIONS, VOCAB, generator=generator, dtype=torch.float64).log_softmax(-1)


def search(table: Tensor, *, size: int, count: int = 99, fusion: Fusion | None = None):
    (top,) = prune_tokens(table[None], position_count=torch.tensor([len(table)]), count=count)
    return prefix_beam_search(top, size=size, fusion=fusion)


def every_sentence(table: Tensor) -> dict[Prefix, float]:
    """The log-probability of each sentence, summed over all alignments one by one."""
    found: dict[Prefix, list[float]] = {}
    rows = table.tolist()
    for symbols in product(range(VOCAB), repeat=len(rows)):
        value = sum(row[symbol] for row, symbol in zip(rows, symbols, strict=True))
        found.setdefault(collapse(symbols), []).append(value)
    return {
        sentence: torch.tensor(values, dtype=torch.float64).logsumexp(0).item()
        for sentence, values in found.items()
    }


class Bigrams:
    """A toy language model: log p(token | last token), with token 2 as the end of a sentence."""

    def __init__(self, generator: torch.Generator) -> None:
        logits = 2 * torch.randn(VOCAB, VOCAB, generator=generator, dtype=torch.float64)
        self.rows = logits.log_softmax(-1).tolist()
        self.num_calls = 0

    def score_next(self, prefixes: Sequence[Prefix], tokens: Sequence[int]) -> list[list[float]]:
        self.num_calls += 1
        return [[self.rows[(prefix or (0,))[-1]][token] for token in tokens] for prefix in prefixes]

    def score(self, sentence: Prefix) -> float:
        before = (0, *sentence)
        return sum(self.rows[a][b] for a, b in zip(before, sentence, strict=False))


def test_neighbours_are_merged_before_blanks_are_deleted():
    assert collapse([7, 7, 0, 7, 5, 5, 0]) == (7, 7, 5)
    assert collapse([0, 0, 0]) == ()
    assert collapse([0, 3, 0, 0, 3, 3]) == (3, 3)
    assert collapse([3, 4, 3]) == (3, 4, 3)
    assert collapse([]) == ()


def test_a_path_by_hand():
    path = read_path([7, 7, 0, 7, 5, 0], [-0.3, -0.1, -0.2, -0.7, -0.4, -0.5])
    assert path.tokens == (7, 7, 5)
    assert path.token_log_probabilities == (-0.1, -0.7, -0.4)
    assert path.log_probability == pytest.approx(-2.2)


def test_best_paths_read_the_real_positions_of_each_sentence(generator):
    table = torch.randn(3, 7, 5, generator=generator, dtype=torch.float64).log_softmax(-1)
    best, counts = table.max(-1), torch.tensor([7, 0, 3])
    found = best_paths(best.indices, best.values, position_count=counts)
    for path, row, count in zip(found, table, counts.tolist(), strict=True):
        best_symbols = row[:count].argmax(-1).tolist()
        assert path.tokens == collapse(best_symbols)
        assert path.log_probability == pytest.approx(row[:count].amax(-1).sum().item())
        assert len(path.token_log_probabilities) == len(path.tokens)
    assert found[1].tokens == ()


def test_a_wide_beam_knows_the_probability_of_every_sentence(table):
    expected = every_sentence(table)
    found = search(table, size=WIDE)
    assert {hypothesis.tokens for hypothesis in found} >= set(expected)
    for hypothesis in found:
        probability = expected.get(hypothesis.tokens, -math.inf)  # some need more positions
        assert hypothesis.log_probability == pytest.approx(probability, abs=1e-12)
        assert hypothesis.score == hypothesis.log_probability
    assert found[0].tokens == max(expected, key=expected.__getitem__)
    scores = [hypothesis.score for hypothesis in found]
    assert scores == sorted(scores, reverse=True)
    assert math.fsum(map(math.exp, expected.values())) == pytest.approx(1)


def test_all_alignments_together_beat_the_best_one():
    """Worked by hand: the best alignment is blank, blank (0.36), but "1" has three alignments."""
    table = torch.tensor([[0.6, 0.4], [0.6, 0.4]]).double().log()
    best = table.max(-1)
    (path,) = best_paths(best.indices[None], best.values[None], position_count=torch.tensor([2]))
    first, second = search(table, size=2)
    assert path.tokens == ()
    assert math.exp(path.log_probability) == pytest.approx(0.36)
    assert first.tokens == (1,)
    assert math.exp(first.log_probability) == pytest.approx(0.4 * 0.6 + 0.6 * 0.4 + 0.4 * 0.4)
    assert second == CtcHypothesis((), second.log_probability, second.score)
    assert math.exp(second.log_probability) == pytest.approx(0.36)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [1, 2, 99])
def test_a_narrow_beam_never_counts_more_than_there_is(size, count, generator):
    for _ in range(20):
        table = torch.randn(POSITIONS, VOCAB, generator=generator).double().log_softmax(-1)
        exact = every_sentence(table)
        best = max(exact.values())
        found = search(table, size=size, count=count)
        assert 1 <= len(found) <= size
        for hypothesis in found:
            assert hypothesis.log_probability <= exact[hypothesis.tokens] + 1e-12
            assert exact[hypothesis.tokens] <= best + 1e-12


def test_a_wider_beam_finds_the_best_sentence_more_often(generator):
    """By the exact probability of what was found, beside that of the best path."""
    sizes, tables = (1, 5, 20, WIDE), 40
    hits, gain = dict.fromkeys(sizes, 0), 0.0
    for _ in range(tables):
        table = torch.randn(POSITIONS, VOCAB, generator=generator).double().log_softmax(-1)
        exact = every_sentence(table)
        for size in sizes:
            hits[size] += exact[search(table, size=size)[0].tokens] == max(exact.values())
        gain += exact[search(table, size=5)[0].tokens] - exact[collapse(table.argmax(-1).tolist())]
    assert hits[1] < hits[5] <= hits[20] <= hits[WIDE] == tables
    assert gain > 0


@pytest.mark.parametrize(("weight", "bonus"), [(0.5, 0.0), (1.0, 1.3), (2.0, -0.4)])
@pytest.mark.parametrize("end", [None, 2])
def test_with_a_language_model_the_best_combined_score_is_found(
    table, generator, weight, bonus, end
):
    model = Bigrams(generator)
    combined = {
        sentence: probability
        + weight * model.score((*sentence, *([] if end is None else [end])))
        + bonus * len(sentence)
        for sentence, probability in every_sentence(table).items()
    }
    found = search(table, size=WIDE, fusion=Fusion(model, weight, bonus, end))
    assert found[0].tokens == max(combined, key=combined.__getitem__)
    for hypothesis in found:
        if hypothesis.tokens in combined:
            assert hypothesis.score == pytest.approx(combined[hypothesis.tokens], abs=1e-12)
    assert model.num_calls == POSITIONS + (end is not None)


def test_a_bonus_alone_favours_long_sentences(table):
    plain = search(table, size=WIDE)[0]
    long = search(table, size=WIDE, fusion=Fusion(token_bonus=9.0))[0]
    assert len(long.tokens) == POSITIONS
    assert long.score == pytest.approx(long.log_probability + 9.0 * POSITIONS)
    assert len(plain.tokens) < POSITIONS


def test_pruning_keeps_the_best_tokens_and_the_blank(generator):
    table = torch.randn(3, 7, 331, generator=generator).log_softmax(-1)
    counts, excluded = torch.tensor([7, 0, 5]), (1, 3)
    found = prune_tokens(table, position_count=counts, count=4, excluded=excluded)
    for top, row, count in zip(found, table, counts.tolist(), strict=True):
        assert len(top.blank) == len(top.tokens) == len(top.log_probabilities) == count
        assert list(top.blank) == row[:count, 0].tolist()
        written = row[:count].index_fill(1, torch.tensor([0, 1, 3]), -torch.inf)
        values, tokens = written.sort(dim=-1, descending=True)
        assert list(top.tokens) == tokens[:, :4].tolist()
        assert list(top.log_probabilities) == values[:, :4].tolist()
    assert prefix_beam_search(found[1], size=3) == (CtcHypothesis((), 0.0, 0.0),)
    (all_of_them,) = prune_tokens(
        table[:1], position_count=counts[:1], count=999, excluded=excluded
    )
    assert len(all_of_them.tokens[0]) == 331 - 3


def test_blanks_everywhere_write_nothing():
    table = torch.full((3, VOCAB), -torch.inf)
    table[:, 0] = 0
    first = search(table, size=3)[0]
    assert first.tokens == ()
    assert first.log_probability == 0


def test_very_small_probabilities_give_no_nan():
    table = torch.full((3, VOCAB), -65504.0)
    for hypothesis in search(table, size=WIDE):
        assert not math.isnan(hypothesis.score)
    impossible = search(torch.full((3, VOCAB), -torch.inf), size=2)
    assert [hypothesis.score for hypothesis in impossible] == [-math.inf] * 2


@pytest.mark.parametrize("sentence", [(), (1,), (2, 2), (3, 1, 2), (1, 1, 3), (3, 3, 3)])
def test_a_sentence_is_aligned_as_the_best_of_all_alignments(table, sentence):
    (top,) = prune_tokens(table[None], position_count=torch.tensor([POSITIONS]), count=99)
    rows = table.tolist()
    every = [
        read_path(symbols, [row[symbol] for row, symbol in zip(rows, symbols, strict=True)])
        for symbols in product(range(VOCAB), repeat=POSITIONS)
        if collapse(symbols) == sentence
    ]
    best = max(every, key=lambda path: path.log_probability)
    found = align(sentence, top)
    assert found.tokens == sentence
    assert found.token_log_probabilities == pytest.approx(best.token_log_probabilities)
    assert found.log_probability == pytest.approx(best.log_probability)


def test_a_sentence_that_the_positions_cannot_write_has_no_alignment(table):
    (top,) = prune_tokens(table[None], position_count=torch.tensor([POSITIONS]), count=99)
    for impossible in ((1, 1, 1, 1), (1, 2, 3, 1, 2, 3), (VOCAB,)):
        found = align(impossible, top)
        assert found.tokens == impossible
        assert found.log_probability == -math.inf
        assert found.token_log_probabilities == (-math.inf,) * len(impossible)
