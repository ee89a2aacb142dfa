"""Huffman codes: a case worked by hand, and what makes a code optimal."""

import heapq

import numpy as np
import torch

from headwise.models.huffman import build_huffman


def test_by_hand() -> None:
    # 45 13 12 16 9 5 (Cormen et al.): lengths 1 3 3 3 4 4, 224 bits in sum.
    counts = np.array([45, 13, 12, 16, 9, 5])
    codes = build_huffman(counts).codes()
    assert [len(code) for code in codes] == [1, 3, 3, 3, 4, 4]
    assert sum(count * len(code) for count, code in zip(counts, codes, strict=True)) == 224


def test_codes_are_optimal_complete_and_prefix_free() -> None:
    counts = np.random.default_rng(2).integers(1, 1000, 101)
    paths = build_huffman(counts)
    codes = paths.codes()
    assert sum(2.0 ** -len(code) for code in codes) == 1.0
    assert not any(a != b and b.startswith(a) for a in codes for b in codes)
    heap, bits = counts.tolist(), 0  # the cost of the optimal tree is the sum of all joined weights
    heapq.heapify(heap)
    while len(heap) > 1:
        joined = heapq.heappop(heap) + heapq.heappop(heap)
        bits += joined
        heapq.heappush(heap, joined)
    assert (
        sum(count * len(code) for count, code in zip(counts.tolist(), codes, strict=True)) == bits
    )
    assert paths.num_nodes == 100
    assert int(paths.nodes.max()) == 99


def test_probabilities_over_the_vocabulary_sum_to_one() -> None:
    paths = build_huffman(np.array([50, 20, 11, 7, 3, 2, 1]))
    nodes = torch.randn(
        paths.num_nodes, 13, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    hidden = torch.randn(13, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    scores = (nodes @ hidden)[paths.nodes]
    turns = torch.where(paths.targets == 1, torch.sigmoid(scores), torch.sigmoid(-scores))
    probabilities = torch.where(paths.weights == 1, turns, 1.0).prod(1)
    assert torch.allclose(probabilities.sum(), torch.tensor(1.0, dtype=torch.float64))


def test_two_words_have_one_question() -> None:
    assert build_huffman(np.array([3, 1])).codes() == ["1", "0"]
