"""word2vec: a word is known by the company it keeps, so its vector is trained to tell its neighbours from strangers.

Every word has an input vector x and every output (a word, or a node of a Huffman tree) a vector y. For inputs X [n, d], outputs
Y [m, d], targets T (1 neighbour, 0 stranger) and weights W (how often a pair occurs), one step of gradient ascent on
Σ W·log P(T) at rate η is three products of matrices:

    G = η W ⊙ (T - σ(Y Xᵀ)),      ΔX = Gᵀ Y,      ΔY = G X

    skip-gram   the inputs are the context words, each tells the centre from `negatives` strangers
    CBOW        the input is the mean of the context words; each of them takes the whole ΔX, undivided, as in the C code
    negatives   a block of neighbouring centres shares `pool` strangers of weight negatives/pool each, so the expected
                gradient is that of fresh strangers for every pair; one that is the centre itself has weight 0 for it
    hierarchy   outputs are the nodes on the centre's path, targets its turns (`huffman.py`)

word2vec and gensim do this a pair at a time: 3·2·d operations for 2·d numbers fetched, bound by memory. Sharing strangers
(Ji et al. 2016, "Parallelizing word2vec in shared and distributed memory") makes each fetched vector serve a whole block: more
operations, all of them in matrix products, several times faster at equal quality (docs/experiments.md).

Mikolov et al. (2013a, b). Tested against: autograd on -log σ written out, a pair-by-pair loop, gensim's vectors.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headwise.data.word_windows import Windows
from headwise.models.huffman import HuffmanPaths


@dataclass(frozen=True)
class WordTables:
    """The vectors that are learnt, changed in place; threads may share them without locks (Hogwild, Niu et al. 2011)."""

    inputs: Float[Tensor, "vocab dim"]
    outputs: Float[Tensor, "output dim"]


def start_tables(num_words: int, num_outputs: int, dim: int, *, generator: np.random.Generator) -> WordTables:
    """Inputs uniform in ±0.5/dim, outputs zero, as in the C code."""
    inputs = (generator.random((num_words, dim), dtype=np.float32) - 0.5) / dim
    return WordTables(torch.from_numpy(inputs), torch.zeros(num_outputs, dim))


def ascend(
    inputs: Float[Tensor, "block input dim"],
    outputs: Float[Tensor, "block output dim"],
    *,
    weights: Float[Tensor, "block output input"],
    targets: Float[Tensor, "block output 1"],
) -> tuple[Float[Tensor, "block input dim"], Float[Tensor, "block output dim"]]:
    """What to add to inputs and outputs: the three products of the header; the weights hold the rate."""
    errors = torch.bmm(outputs, inputs.transpose(1, 2)).sigmoid_()
    torch.sub(targets, errors, out=errors)
    errors.mul_(weights)
    return torch.bmm(errors.transpose(1, 2), outputs), torch.bmm(errors, inputs)


def ascend_own(
    inputs: Float[Tensor, "block centre dim"], outputs: Float[Tensor, "block centre dim"], *, rate: float
) -> tuple[Float[Tensor, "block centre dim"], Float[Tensor, "block centre dim"]]:
    """The same where each input has one output, its own, to say yes to: a diagonal, for which no matrix is multiplied."""
    errors = (inputs * outputs).sum(2, keepdim=True).neg_().sigmoid_().mul_(rate)  # 1 - σ(s) = σ(-s)
    return errors * outputs, errors * inputs


@dataclass(frozen=True)
class Questions:
    """What is asked about the centres of a block: outputs, the right answers, the weight of each for each centre."""

    outputs: Int[Tensor, "block output"]
    targets: Float[Tensor, "block output 1"]
    weights: Float[Tensor, "block output centre"]
    own: Int[Tensor, "block centre"] | None
    """With negatives, each centre is itself an output that should be told by yes; in a tree there is nothing but the path."""


def ask_negatives(
    centres: Int[Tensor, "block centre"], strangers: Int[Tensor, "block stranger"], *, negatives: int
) -> Questions:
    """The centre itself (yes) and strangers shared by the block (no), `negatives` of them in sum."""
    num_blocks, pool = strangers.shape
    weights = (strangers[:, :, None] != centres[:, None, :]).float().mul_(negatives / pool)
    return Questions(strangers, torch.zeros(1, pool, 1).expand(num_blocks, -1, -1), weights, centres)


def ask_path(centres: Int[Tensor, "block 1"], paths: HuffmanPaths) -> Questions:
    """The turns on the centre's path."""
    word = centres[:, 0]
    return Questions(paths.nodes[word], paths.targets[word][:, :, None], paths.weights[word][:, :, None], None)


def learn_skip_gram(tables: WordTables, windows: Windows, questions: Questions, *, rate: float, blocks: int) -> None:
    """Each context word is an input; it is asked about every centre it is paired with. `blocks` are learnt at a time."""
    outputs, targets = questions.outputs, questions.targets
    weights = torch.bmm(questions.weights, windows.pairs)
    if questions.own is not None:
        outputs = torch.cat((questions.own, outputs), 1)
        targets = torch.cat((torch.ones_like(questions.own[:, :, None], dtype=torch.float32), targets), 1)
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


def learn_cbow(tables: WordTables, windows: Windows, questions: Questions, *, rate: float, blocks: int) -> None:
    """The mean of a centre's context words is the input; a centre without context has the mean 0, and learns nothing."""
    averaging = windows.pairs / windows.pairs.sum(2, keepdim=True).clamp_(min=1)
    spreading = windows.pairs.transpose(1, 2)
    weights = questions.weights * (rate if questions.own is None else -rate)
    for one in _parts(len(averaging), blocks):
        contexts, outputs = windows.contexts[one], questions.outputs[one]
        means = torch.bmm(averaging[one], _fetch(tables.inputs, contexts))
        asked = _fetch(tables.outputs, outputs)
        if questions.own is None:
            to_means, to_outputs = ascend(means, asked, weights=weights[one], targets=questions.targets[one])
        else:
            # Every answer about a stranger is no: its error is -σ (the sign is in the weights); what the centre itself says is in the same sum.
            own = questions.own[one]
            to_means, to_own = ascend_own(means, _fetch(tables.outputs, own), rate=rate)
            errors = torch.bmm(asked, means.transpose(1, 2)).sigmoid_().mul_(weights[one])
            to_means.baddbmm_(errors.transpose(1, 2), asked)
            to_outputs = torch.bmm(errors, means)
            _add(tables.outputs, own, to_own)
        _add(tables.outputs, outputs, to_outputs)
        _add(tables.inputs, contexts, torch.bmm(spreading[one], to_means))


def _parts(num_blocks: int, blocks: int) -> list[slice]:
    return [slice(first, first + blocks) for first in range(0, num_blocks, blocks)]


def _fetch(table: Float[Tensor, "row dim"], ids: Int[Tensor, "block place"]) -> Float[Tensor, "block place dim"]:
    # index_select copies a row in 14 ns where table[ids] takes 66.
    return table.index_select(0, ids.view(-1)).view(*ids.shape, -1)


def _add(
    table: Float[Tensor, "row dim"], ids: Int[Tensor, "block place"], change: Float[Tensor, "block place dim"]
) -> None:
    table.index_add_(0, ids.view(-1), change.view(-1, table.shape[1]))
