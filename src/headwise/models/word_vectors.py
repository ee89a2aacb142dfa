"""word2vec: vectors trained to tell a word's neighbours from negative samples.

Every word has an input vector x, and every output (a word, or a node of a Huffman tree) a vector y.
For inputs X [n, d], outputs Y [m, d], targets T (1 neighbour, 0 negative sample) and weights W (how
often a pair occurs), one step of gradient ascent on Σ W·log P(T) at rate η is three matrix
products:

    G = η W ⊙ (T - σ(Y Xᵀ)),      ΔX = Gᵀ Y,      ΔY = G X

    skip-gram   the inputs are the context words; each is trained on the centre and `negatives`
                negative samples
    CBOW        the input is the mean of the context words; each of them takes the whole ΔX,
                undivided, as in the C code
    negatives   a block of neighbouring centres shares `pool` negative samples of weight
                negatives/pool each, so the expected gradient is that of fresh samples for every
                pair; a sample that is the centre itself has weight 0 for it
    hierarchy   outputs are the nodes on the centre's path, targets its turns (`huffman.py`)

word2vec and gensim do this a pair at a time: 3·2·d operations for 2·d numbers fetched, bound by
memory. Sharing negative samples (Ji et al. 2016, "Parallelizing word2vec in shared and distributed
memory") makes each fetched vector serve a whole block. That is more operations, all of them in
matrix products, and several times faster at equal quality (docs/experiments). CBOW's means and
their gradients are sums over bags (`data/text/context_bags.py`), not products.

Mikolov et al. (2013a, b).
Tested against: autograd on -log σ written out, a pair-by-pair loop, gensim's vectors.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.data.text.context_bags import Bags
from headwise.data.text.context_windows import Windows
from headwise.models.huffman import HuffmanPaths


@dataclass(frozen=True)
class WordTables:
    """The vectors, changed in place; threads may share them without locks (Hogwild, Niu 2011)."""

    inputs: Float[Tensor, "vocab dim"]
    outputs: Float[Tensor, "output dim"]


def start_tables(
    num_words: int, num_outputs: int, dim: int, *, generator: np.random.Generator
) -> WordTables:
    """Inputs uniform in ±0.5/dim, outputs zero, as in the C code."""
    inputs = generator.random((num_words, dim), dtype=np.float32)
    inputs -= 0.5
    inputs /= dim
    return WordTables(torch.from_numpy(inputs), torch.zeros(num_outputs, dim))


def ascend(
    inputs: Float[Tensor, "block input dim"],
    outputs: Float[Tensor, "block output dim"],
    *,
    weights: Float[Tensor, "block output input"],
    targets: Float[Tensor, "block output 1"],
) -> tuple[Float[Tensor, "block input dim"], Float[Tensor, "block output dim"]]:
    """What to add to inputs and outputs (the three products above); weights include the rate."""
    errors = torch.bmm(outputs, inputs.transpose(1, 2)).sigmoid_()
    torch.sub(targets, errors, out=errors)
    errors.mul_(weights)
    return torch.bmm(errors.transpose(1, 2), outputs), torch.bmm(errors, inputs)


@dataclass(frozen=True)
class BlockTargets:
    """Outputs for the centres of a block, their targets, and a weight for each centre."""

    outputs: Int[Tensor, "block output"]
    targets: Float[Tensor, "block output 1"]
    weights: Float[Tensor, "block output centre"]
    own: Int[Tensor, "block centre"] | None
    """With negative samples each centre is an output of target 1; a tree has the path only."""


def sample_targets(
    centres: Int[Tensor, "block centre"],
    samples: Int[Tensor, "block sample"],
    *,
    negatives: int,
) -> BlockTargets:
    """The centre (target 1) and samples shared by the block (target 0), `negatives` in sum."""
    num_blocks, pool = samples.shape
    weights = torch.empty(num_blocks, pool, centres.shape[1])
    torch.ne(samples[:, :, None], centres[:, None, :], out=weights).mul_(negatives / pool)
    return BlockTargets(
        samples, torch.zeros(1, pool, 1).expand(num_blocks, -1, -1), weights, centres
    )


def path_targets(centres: Int[Tensor, "block 1"], paths: HuffmanPaths) -> BlockTargets:
    """The turns on the centre's path."""
    word = centres[:, 0]
    return BlockTargets(
        paths.nodes[word], paths.targets[word][:, :, None], paths.weights[word][:, :, None], None
    )


def learn_skip_gram(
    tables: WordTables, windows: Windows, block_targets: BlockTargets, *, rate: float, blocks: int
) -> None:
    """Each context word is an input, trained on every centre it is paired with, block by block."""
    outputs, targets = block_targets.outputs, block_targets.targets
    weights = torch.bmm(block_targets.weights, windows.pairs)
    if block_targets.own is not None:
        outputs = torch.cat((block_targets.own, outputs), 1)
        targets = torch.cat(
            (torch.ones_like(block_targets.own[:, :, None], dtype=torch.float32), targets), 1
        )
        weights = torch.cat((windows.pairs, weights), 1)
    weights.mul_(rate)
    for one in _parts(len(outputs), blocks):
        contexts = windows.contexts[one]
        to_inputs, to_outputs = ascend(
            _fetch(tables.inputs, contexts),
            _fetch(tables.outputs, outputs[one]),
            weights=weights[one],
            targets=targets[one],
        )
        _add(tables.inputs, contexts, to_inputs)
        _add(tables.outputs, outputs[one], to_outputs)


def learn_cbow(tables: WordTables, bags: Bags, block_targets: BlockTargets, *, rate: float) -> None:
    """The mean of a centre's context words is the input; without context nothing is learned."""
    num_batches, size = bags.centres.shape
    own, outputs = block_targets.own, block_targets.outputs.view(num_batches, -1)
    rows = outputs if own is None else torch.cat((own.view(num_batches, -1), outputs), 1)
    weights, targets = (
        part.view(num_batches, -1, *part.shape[1:])
        for part in (block_targets.weights, block_targets.targets)
    )
    place_starts = torch.arange(0, len(bags.watchers) + 1, bags.near, dtype=torch.int32)
    centre_starts, row_starts = place_starts[: size + 1], torch.arange(rows.shape[1] + 1)
    ascend_negatives = NegativesStep(weights[0], tables.inputs.shape[1], rate=rate)
    # All tensors are cut into batches at once: a slice costs as much as the operation on it.
    parts = (bags.words, bags.averaging, bags.places, bags.spreading, rows, weights, targets)
    for words, averaging, places, spreading, asked, weight, target in zip(
        *(part.unbind() for part in parts), strict=True
    ):
        means = _sum_bags(tables.inputs, words, centre_starts, averaging)
        vectors = _sum_bags(tables.outputs, asked, row_starts, None)
        if own is None:
            to_means, to_outputs = ascend_paths(
                means, vectors, weights=weight, targets=target, rate=rate
            )
        else:
            to_means, to_outputs = ascend_negatives(means, vectors, weight)
        tables.outputs.index_add_(0, asked, to_outputs)
        tables.inputs.index_add_(
            0, places, _sum_bags(to_means, bags.watchers, place_starts, spreading)
        )


def ascend_paths(
    means: Float[Tensor, "centre dim"],
    vectors: Float[Tensor, "row dim"],
    *,
    weights: Float[Tensor, "centre output 1"],
    targets: Float[Tensor, "centre output 1"],
    rate: float,
) -> tuple[Float[Tensor, "centre dim"], Float[Tensor, "row dim"]]:
    """What to add to the means and to the vectors of the nodes on their paths."""
    nodes = vectors.view(*weights.shape[:2], -1)
    to_means, to_nodes = ascend(means[:, None], nodes, weights=weights * rate, targets=targets)
    return to_means[:, 0], to_nodes.view(vectors.shape)


class NegativesStep:
    """The same for vectors of the centres, followed by those of their negative samples.

    Tensors for results, and views of them, are made once for all batches of one shape. With several
    threads every call of torch may wait for the interpreter, so there are as few calls as possible.
    """

    def __init__(
        self, weights: Float[Tensor, "block sample block_centre"], dim: int, *, rate: float
    ) -> None:
        self.blocks, self.pool, self.share = weights.shape
        self.rate = rate
        self.to_means, self.errors = (
            torch.empty(self.blocks * self.share, dim),
            torch.empty_like(weights),
        )
        self.to_inputs = self.to_means.view(self.blocks, self.share, dim)
        self.errors_by_centre = self.errors.transpose(1, 2)

    def __call__(
        self,
        means: Float[Tensor, "centre dim"],
        vectors: Float[Tensor, "row dim"],
        weights: Float[Tensor, "block sample block_centre"],
    ) -> tuple[Float[Tensor, "centre dim"], Float[Tensor, "row dim"]]:
        """Overwrites the vectors with what is to be added to them.

        The error of a centre with itself is 1 - σ: a diagonal, which needs no matrix product. The
        error of every negative sample is -σ.
        """
        rate, errors = self.rate, self.errors
        own, samples = (
            vectors[: means.shape[0]],
            vectors[means.shape[0] :].view(self.blocks, self.pool, -1),
        )
        inputs = means.view(self.blocks, self.share, -1)
        error = torch.rsub(torch.linalg.vecdot(means, own).sigmoid_(), rate, alpha=rate)[:, None]
        torch.bmm(samples, inputs.mT, out=errors).sigmoid_().mul_(weights)
        torch.mul(error, own, out=self.to_means)
        self.to_inputs.baddbmm_(self.errors_by_centre, samples, alpha=-rate)
        torch.mul(error, means, out=own)
        samples.baddbmm_(errors, inputs, beta=0, alpha=-rate)
        return self.to_means, vectors


def _sum_bags(
    table: Float[Tensor, "row dim"],
    ids: Int[Tensor, "bag_near"],
    starts: Int[Tensor, "bag_end"],
    weights: Float[Tensor, "bag_near"] | None,
) -> Float[Tensor, "bag dim"]:
    # embedding_bag prefetches rows into the cache. F.embedding_bag is the same operation with 5 µs
    # of Python on top.
    return torch.embedding_bag(
        table, ids, starts, per_sample_weights=weights, include_last_offset=True
    )[0]


def _parts(num_blocks: int, blocks: int) -> list[slice]:
    return [slice(first, first + blocks) for first in range(0, num_blocks, blocks)]


def _fetch(
    table: Float[Tensor, "row dim"], ids: Int[Tensor, "block place"]
) -> Float[Tensor, "block place dim"]:
    # index_select copies a row in 14 ns where table[ids] takes 66.
    return table.index_select(0, ids.view(-1)).view(*ids.shape, -1)


def _add(
    table: Float[Tensor, "row dim"],
    ids: Int[Tensor, "block place"],
    change: Float[Tensor, "block place dim"],
) -> None:
    table.index_add_(0, ids.view(-1), change.view(-1, table.shape[1]))
