"""Huffman codes for a hierarchical softmax: about log2 V decisions instead of V for each word.

V is the size of the vocabulary. Huffman's algorithm joins the two least frequent subtrees until one
is left. The code of a word is the turns on its path from the root, so frequent words get short
paths. Each inner node n is a yes/no question with a vector v_n of its own, and h is the vector that
predicts. The product of the answers along a path is the word's probability. Over all words these
probabilities sum to 1, because the two answers of every question do.

    P(word | h) = Π over nodes n on the path  σ(±h·v_n),      + where the code is 0, - where it is 1

Huffman (1952); Morin & Bengio (2005), Mikolov et al. (2013, "Distributed representations", section
2.1).
Tested against: the textbook case worked by hand, Kraft's equality, Σ count·length no larger than
any other tree's.
"""

import heapq
from dataclasses import dataclass
from itertools import count as counting

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class HuffmanPaths:
    """The inner nodes on each word's path, root first; padding is node 0 of weight 0."""

    nodes: Int[Tensor, "vocab depth"]
    targets: Float[Tensor, "vocab depth"]
    """1 where the code is 0."""
    weights: Float[Tensor, "vocab depth"]
    """1 on the path, 0 in the padding."""

    @property
    def num_nodes(self) -> int:
        return len(self.nodes) - 1

    def codes(self) -> list[str]:
        """The code of each word as text."""
        lengths = self.weights.sum(1).int().tolist()
        return [
            "".join("0" if yes else "1" for yes in row[:length])
            for row, length in zip(self.targets.tolist(), lengths, strict=True)
        ]


def build_huffman(counts: np.ndarray) -> HuffmanPaths:
    """Optimal codes for these counts (at least two words)."""
    num_words = len(counts)
    # Ties are broken by the order of creation: the tree depends on the counts alone.
    age = counting()
    heap = [(int(weight), next(age), node) for node, weight in enumerate(counts)]
    heapq.heapify(heap)
    parent, bit = [0] * (2 * num_words - 1), [0] * (2 * num_words - 1)
    for inner in range(num_words, 2 * num_words - 1):
        light, heavy = heapq.heappop(heap), heapq.heappop(heap)
        parent[light[2]] = parent[heavy[2]] = inner
        bit[heavy[2]] = 1
        heapq.heappush(heap, (light[0] + heavy[0], next(age), inner))
    root = 2 * num_words - 2
    paths = []
    for word in range(num_words):
        node, path = word, []
        while node != root:
            path.append((parent[node] - num_words, bit[node]))
            node = parent[node]
        paths.append(path[::-1])
    depth = max(map(len, paths))
    nodes = torch.zeros(num_words, depth, dtype=torch.long)
    targets, weights = torch.zeros(num_words, depth), torch.zeros(num_words, depth)
    for word, path in enumerate(paths):
        turns = torch.tensor(path)
        nodes[word, : len(path)], targets[word, : len(path)], weights[word, : len(path)] = (
            turns[:, 0],
            1 - turns[:, 1],
            1,
        )
    return HuffmanPaths(nodes, targets, weights)
