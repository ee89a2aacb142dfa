"""Generation from a graph through the generator: every search, limits, and reading a target."""

from collections.abc import Sequence
from itertools import combinations, pairwise, product
from typing import Any

import pytest
import torch
from torch import Tensor

from headwise.decoding.choices import make_generator
from headwise.decoding.parallel.graph_search import (
    GraphBeamSettings,
    GraphSearch,
    JointViterbiSettings,
    LookaheadSettings,
)
from headwise.decoding.parallel.one_pass import OnePassSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.errors import SettingsError
from headwise.text.tokenizer import BOS, EOS, PAD

VOCAB = 17
SEARCHES = [
    OnePassSettings(),
    LookaheadSettings(),
    JointViterbiSettings(),
    GraphBeamSettings(size=3),
]
SOURCES = [[5, 6, 6, 7], [8], [], [9, 10, 11, 12, 13]]


class Skipper:
    """Two vertices for each source token and its end; the likely path visits every second one."""

    output_form = "graph"
    device = torch.device("cpu")

    def read_sources(self, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        return [list(source) for source in sources]

    def predict_graph(self, memory: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
        count = torch.tensor([2 * len(source) + 2 for source in memory])
        size = int(count.max())
        scores = torch.full((len(memory), size, VOCAB), 0.1 / VOCAB)
        links = torch.zeros(len(memory), size, size)
        for row, source in enumerate(memory):
            last = 2 * len(source) + 1
            for place, token in enumerate(source):
                scores[row, 2 * place + 1, token] = 0.9
            for vertex in range(last):
                links[row, vertex, vertex + 1 : last + 1] = 0.1
                wanted = vertex + 1 if vertex == 0 else vertex + 2
                links[row, vertex, min(wanted, last)] += 0.9
        scores = scores / scores.sum(-1, keepdim=True)
        return scores.log(), (links / links.sum(-1, keepdim=True)).nan_to_num().log(), count


@pytest.mark.parametrize("settings", SEARCHES, ids=lambda one: one.kind)
def test_it_spells(settings: Any) -> None:
    found = make_generator(settings, Skipper()).generate(SOURCES, settings)
    assert [list(one.best.tokens) for one in found] == SOURCES
    for one in found:
        assert one.best.finished
        if settings.kind != "graph_beam":
            assert one.best.log_probability == pytest.approx(sum(one.best.token_log_probabilities))


@pytest.mark.parametrize("settings", SEARCHES, ids=lambda one: one.kind)
def test_a_sentence_alone_equals_the_sentence_in_a_batch(settings: Any) -> None:
    search = GraphSearch(Skipper())
    for source, found in zip(SOURCES, search.generate(SOURCES, settings), strict=True):
        (alone,) = search.generate([source], settings)
        assert alone.best.tokens == found.best.tokens
        assert alone.best.log_probability == pytest.approx(found.best.log_probability, rel=1e-5)


@pytest.mark.parametrize("settings", SEARCHES, ids=lambda one: one.kind)
def test_a_limit_holds(settings: Any) -> None:
    limited = settings.model_copy(update={"max_length": 3})
    (found,) = GraphSearch(Skipper()).generate([[5, 6, 7, 8]], limited)
    assert len(found.best.tokens) <= 2


def test_reading_sums_over_all_paths() -> None:
    generator = torch.Generator().manual_seed(6)
    vocab, size = 6, 5
    scores = torch.rand(1, size, vocab, generator=generator, dtype=torch.float64)
    scores[..., [PAD, BOS, EOS]] = 0
    scores = scores / scores.sum(-1, keepdim=True)
    links = torch.rand(1, size, size, generator=generator, dtype=torch.float64).triu(1)
    links = (links / links.sum(-1, keepdim=True)).nan_to_num()

    class Drawn(Skipper):
        def predict_graph(self, memory: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
            return scores.log(), links.log(), torch.tensor([size])

    words = range(3, vocab)
    for length in range(size - 1):
        for text in product(words, repeat=length):
            exact = 0.0
            for inner in combinations(range(1, size - 1), length):
                path = (0, *inner, size - 1)
                share = 1.0
                for before, after in pairwise(path):
                    share *= float(links[0, before, after])
                for vertex, word in zip(inner, text, strict=True):
                    share *= float(scores[0, vertex, word])
                exact += share
            rows = GraphSearch(Drawn()).read([[5]], text)
            total = sum(float(row[0, word]) for row, word in zip(rows, (*text, EOS), strict=True))
            assert total == pytest.approx(torch.tensor(exact).log().item(), abs=1e-4)


def test_a_search_over_steps_is_refused_with_what_works() -> None:
    kinds = "one_pass or lookahead or joint_viterbi or graph_beam"
    with pytest.raises(SettingsError, match=rf"a graph of vertices; use decoding\.kind={kinds}"):
        make_generator(GreedySettings(), Skipper())
