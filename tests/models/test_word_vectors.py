"""One step of word2vec against autograd on the loss written out pair by pair."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from headwise.data.text.context_bags import BagCutter
from headwise.data.text.context_windows import WindowCutter, Windows
from headwise.models.huffman import build_huffman
from headwise.models.word_vectors import (
    BlockTargets,
    WordTables,
    learn_cbow,
    learn_skip_gram,
    path_targets,
    sample_targets,
    start_tables,
)

NUM_WORDS, DIM, RATE = 23, 7, 0.1


def make_tables(num_outputs: int) -> WordTables:
    generator = torch.Generator().manual_seed(5)
    return WordTables(
        torch.randn(NUM_WORDS, DIM, generator=generator),
        torch.randn(num_outputs, DIM, generator=generator),
    )


def make_text(num_words: int = 19) -> tuple[np.ndarray, np.ndarray]:
    ids = np.random.default_rng(1).integers(0, NUM_WORDS, num_words).astype(np.int32)
    return ids, np.repeat([0, 1], [11, num_words - 11]).astype(np.int32)


def make_windows(share: int, num_words: int = 19) -> Windows:
    return WindowCutter(window=3, share=share).cut(
        *make_text(num_words), generator=np.random.default_rng(2)
    )


def log_likelihood(score: Tensor, target: float) -> Tensor:
    return F.logsigmoid(score) if target else F.logsigmoid(-score)


def answer(outputs: Tensor, x: Tensor, questions: BlockTargets, block: int, centre: int) -> Tensor:
    """The weighted log-likelihood of all answers about one centre."""
    own = questions.own
    total = torch.zeros(()) if own is None else log_likelihood(outputs[own[block, centre]] @ x, 1)
    for place, output in enumerate(questions.outputs[block].tolist()):
        weight = questions.weights[block, place, centre]
        total = total + weight * log_likelihood(
            outputs[output] @ x, float(questions.targets[block, place])
        )
    return total


def skip_gram_loss(
    inputs: Tensor, outputs: Tensor, windows: Windows, questions: BlockTargets
) -> Tensor:
    total = torch.zeros(())
    for block, centre, context in torch.nonzero(windows.pairs).tolist():
        x = inputs[windows.contexts[block, context]]
        total = total + answer(outputs, x, questions, block, centre)
    return total


def step_by_autograd(
    loss: Callable[..., Tensor], tables: WordTables, *asked: object
) -> tuple[Tensor, Tensor]:
    inputs, outputs = (
        tables.inputs.clone().requires_grad_(),
        tables.outputs.clone().requires_grad_(),
    )
    loss(inputs, outputs, *asked).backward()
    assert inputs.grad is not None
    assert outputs.grad is not None
    return tables.inputs + RATE * inputs.grad, tables.outputs + RATE * outputs.grad


def ask(kind: str, windows: Windows) -> tuple[BlockTargets, int]:
    if kind == "path":
        paths = build_huffman(np.arange(1, NUM_WORDS + 1))
        return path_targets(windows.centres, paths), paths.num_nodes
    strangers = torch.randint(
        0, NUM_WORDS, (len(windows.centres), 5), generator=torch.Generator().manual_seed(3)
    )
    return sample_targets(windows.centres, strangers, negatives=3), NUM_WORDS


@pytest.mark.parametrize(("kind", "share"), [("negatives", 4), ("negatives", 1), ("path", 1)])
def test_skip_gram_is_gradient_ascent(kind: str, share: int) -> None:
    windows = make_windows(share)
    questions, num_outputs = ask(kind, windows)
    tables = make_tables(num_outputs)
    inputs, outputs = step_by_autograd(skip_gram_loss, tables, windows, questions)
    learn_skip_gram(tables, windows, questions, rate=RATE, blocks=len(windows.centres))
    assert torch.allclose(tables.inputs, inputs, atol=1e-5)
    assert torch.allclose(tables.outputs, outputs, atol=1e-5)


@pytest.mark.parametrize(("kind", "share"), [("negatives", 4), ("path", 1)])
@pytest.mark.parametrize("num_batches", [1, 2])
def test_cbow_is_gradient_ascent_whose_inputs_take_the_whole_change(
    kind: str, share: int, num_batches: int
) -> None:
    """A batch after the other; the loss knows the pairs of `WindowCutter`, what learns the bags of
    `BagCutter`, from the same draws."""
    windows = make_windows(share, num_words=23 if share == 4 else 26)
    num_blocks = len(windows.centres) // num_batches
    bags = BagCutter(window=3, share=share, batch=num_blocks * share).cut(
        *make_text(23 if share == 4 else 26), generator=np.random.default_rng(2)
    )
    questions, num_outputs = ask(kind, windows)
    tables = make_tables(num_outputs)

    def loss(inputs: Tensor, outputs: Tensor, blocks: range) -> Tensor:
        total = torch.zeros(())
        for block in blocks:
            for centre in range(share):
                near = torch.nonzero(windows.pairs[block, centre]).ravel()
                if not len(near):
                    continue
                vectors = inputs[windows.contexts[block, near]]
                # The value is the mean; the gradient of each vector that of the sum: the C code's,
                # on purpose.
                mean = vectors.sum(0) + (vectors.mean(0) - vectors.sum(0)).detach()
                total = total + answer(outputs, mean, questions, block, centre)
        return total

    expected = tables
    for batch in range(num_batches):
        blocks = range(batch * num_blocks, (batch + 1) * num_blocks)
        expected = WordTables(*step_by_autograd(loss, expected, blocks))
    learn_cbow(tables, bags, questions, rate=RATE)
    assert len(bags.centres) == num_batches
    assert torch.allclose(tables.inputs, expected.inputs, atol=1e-5)
    assert torch.allclose(tables.outputs, expected.outputs, atol=1e-5)


def test_one_pair_by_hand() -> None:
    """Word 0 beside word 1, one stranger (word 2): σ(0) = ½ at the start, so every error is ±½."""
    ids, sentences = np.array([0, 1], dtype=np.int32), np.zeros(2, dtype=np.int32)
    windows = WindowCutter(window=1, share=2).cut(
        ids, sentences, generator=np.random.default_rng(0)
    )
    tables = WordTables(torch.eye(3), torch.zeros(3, 3))
    questions = sample_targets(windows.centres, torch.tensor([[2]]), negatives=1)
    learn_skip_gram(tables, windows, questions, rate=1.0, blocks=1)
    assert torch.equal(tables.inputs, torch.eye(3))  # the outputs were zero
    assert tables.outputs.tolist() == [[0, 0.5, 0], [0.5, 0, 0], [-0.5, -0.5, 0]]


def test_a_stranger_that_is_the_centre_is_not_pushed_away() -> None:
    centres, strangers = torch.tensor([[4, 9]]), torch.tensor([[9, 1, 4, 4]])
    questions = sample_targets(centres, strangers, negatives=6)
    assert questions.weights[0].tolist() == [[1.5, 0], [1.5, 1.5], [0, 1.5], [0, 1.5]]


def test_shared_strangers_have_the_gradient_of_fresh_ones_in_expectation() -> None:
    """Summing over every possible stranger with its probability: a pool of any size gives the same
    expected step."""
    windows = make_windows(4)
    tables = make_tables(NUM_WORDS)
    expected = {}
    for pool in (1, 3):
        total = torch.zeros_like(tables.outputs)
        for word in range(NUM_WORDS):
            strangers = torch.full((len(windows.centres), pool), word)
            changed = make_tables(NUM_WORDS)
            questions = sample_targets(windows.centres, strangers, negatives=5)
            learn_skip_gram(changed, windows, questions, rate=RATE, blocks=99)
            total += (changed.outputs - tables.outputs) / NUM_WORDS
        expected[pool] = total
    assert torch.allclose(expected[1], expected[3], atol=1e-5)


def test_the_start_is_the_c_codes() -> None:
    tables = start_tables(211, 210, 50, generator=np.random.default_rng(1))
    assert float(tables.inputs.abs().max()) <= 0.01
    assert float(tables.inputs.std()) == pytest.approx(0.02 / 12**0.5, rel=0.03)
    assert tables.outputs.shape == (210, 50)
    assert not tables.outputs.any()
