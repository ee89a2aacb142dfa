from itertools import groupby, product

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from headwise.training.parallel.ctc import best_alignment, ctc_loss, fits
from headwise.training.parallel.token_scores import score_tokens

VOCAB = 4


def choose(log_probabilities: Tensor, labels: Tensor) -> Tensor:
    """Columns for the blank (token 0) and each label, from a table of all words."""
    tokens = torch.cat([torch.zeros_like(labels[:, :1]), labels], dim=1)
    num_positions = log_probabilities.shape[1]
    return log_probabilities.gather(2, tokens[:, None].expand(-1, num_positions, -1))


def collapse(symbols: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(symbol for symbol, _ in groupby(symbols) if symbol != 0)


def alignments_of(target: tuple[int, ...], num_positions: int) -> list[tuple[int, ...]]:
    """Every sequence of symbols that collapses to the target, found by trying all."""
    return [
        symbols
        for symbols in product(range(VOCAB), repeat=num_positions)
        if collapse(symbols) == target
    ]


def add_up(log_probabilities: Tensor, target: tuple[int, ...]) -> Tensor:
    """The log-probability of each alignment of the target."""
    position = range(len(log_probabilities))
    return torch.stack(
        [
            log_probabilities[position, list(symbols)].sum()
            for symbols in alignments_of(target, len(log_probabilities))
        ]
    )


TARGETS = [(), (1,), (2, 2), (1, 3), (3, 2, 1), (1, 1, 2), (2, 3, 3), (3, 3, 3), (2, 1, 2)]


@pytest.fixture
def table(generator: torch.Generator) -> Tensor:
    """Five positions of a vocabulary of four, as logits."""
    return torch.randn(5, VOCAB, generator=generator, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("target", TARGETS)
def test_loss_and_gradient_are_those_of_all_alignments(table, target):
    labels = torch.tensor([target], dtype=torch.long).view(1, -1)
    counts = {
        "position_count": torch.tensor([5]),
        "label_count": torch.tensor([len(target)]),
    }
    log_probabilities = table.log_softmax(-1)
    tokens = torch.tensor([[0, *target]]).expand(5, -1)
    scores = log_probabilities.gather(1, tokens)[None]
    (ours,) = ctc_loss(scores, labels, **counts)
    expected = -add_up(log_probabilities, target).logsumexp(0)
    torch.testing.assert_close(ours, expected, rtol=1e-12, atol=0)
    (mine,) = torch.autograd.grad(ours * 0.7, table, retain_graph=True)
    (other,) = torch.autograd.grad(expected * 0.7, table, retain_graph=True)
    torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("target", TARGETS)
def test_best_alignment_is_the_best_of_all(table, target):
    labels = torch.tensor([target], dtype=torch.long).view(1, -1)
    log_probabilities = table.detach().log_softmax(-1)
    tokens = torch.tensor([0, *target])
    best = best_alignment(
        log_probabilities[:, tokens][None],
        labels,
        position_count=torch.tensor([5]),
        label_count=torch.tensor([len(target)]),
    )
    every = add_up(log_probabilities, target)
    torch.testing.assert_close(best.log_probability[0], every.max(), rtol=1e-12, atol=0)
    symbols = tokens[best.column[0]]
    assert tuple(symbols.tolist()) == alignments_of(target, 5)[int(every.argmax())]


@pytest.fixture
def batch(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Seven pairs: long, all blanks, as many labels as positions, one, repeats, and two that do not
    fit: too many labels, and no room for the blank between equal ones."""
    logits = torch.randn(7, 13, 11, generator=generator, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(1, 11, (7, 5), generator=generator)
    labels[2] = torch.tensor([4, 7, 4, 9, 3])
    labels[4] = 6
    labels[6, :2] = 8
    positions = torch.tensor([13, 11, 5, 7, 9, 2, 2])
    label_count = torch.tensor([5, 0, 5, 1, 5, 3, 2])
    return logits, labels, positions, label_count


def test_equals_torch_with_its_gradients(batch, generator):
    logits, labels, positions, label_count = batch
    log_probabilities = logits.log_softmax(-1)
    ours = ctc_loss(
        choose(log_probabilities, labels),
        labels,
        position_count=positions,
        label_count=label_count,
    )
    theirs = F.ctc_loss(
        log_probabilities.transpose(0, 1),
        labels,
        positions,
        label_count,
        reduction="none",
        zero_infinity=True,
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=0)
    factors = torch.randn(7, generator=generator, dtype=torch.float64)
    (mine,) = torch.autograd.grad((ours * factors).sum(), logits, retain_graph=True)
    (other,) = torch.autograd.grad((theirs * factors).sum(), logits)
    torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-13)
    assert (mine[5:] == 0).all()


def test_gradcheck(batch):
    logits, labels, positions, label_count = batch

    def loss(scores: Tensor) -> Tensor:
        return ctc_loss(scores, labels, position_count=positions, label_count=label_count)

    scores = choose(logits.detach().log_softmax(-1), labels).requires_grad_()
    assert torch.autograd.gradcheck(loss, (scores,))


def test_which_targets_fit(batch):
    _, labels, positions, label_count = batch
    room = fits(labels, position_count=positions, label_count=label_count)
    assert room.tolist() == [True] * 5 + [False] * 2
    # Five equal labels need four blanks: nine positions are just enough.
    assert not fits(labels[4:5], position_count=torch.tensor([8]), label_count=torch.tensor([5]))
    brute_force = [bool(alignments_of(target, 3)) for target in TARGETS]
    padded = torch.tensor([[*target, 1, 1, 1][:3] for target in TARGETS])
    found = fits(
        padded,
        position_count=torch.full((len(TARGETS),), 3),
        label_count=torch.tensor([len(target) for target in TARGETS]),
    )
    assert found.tolist() == brute_force


@pytest.mark.parametrize("garbage", [torch.nan, torch.inf, -torch.inf, 1e9])
def test_what_stands_in_padding_makes_no_difference(batch, garbage):
    logits, labels, positions, label_count = batch
    scores = choose(logits.detach().log_softmax(-1), labels)
    scores = F.pad(scores, (0, 2, 0, 3), value=garbage)
    position, column = torch.arange(16), torch.arange(8)
    padding = (position[:, None] >= positions[:, None, None]) | (
        column > label_count[:, None, None]
    )
    scores = scores.masked_fill(padding, garbage).requires_grad_()
    together = ctc_loss(
        scores, F.pad(labels, (0, 2), value=6), position_count=positions, label_count=label_count
    )
    (grad,) = torch.autograd.grad(together.sum(), scores)
    best = best_alignment(
        scores, F.pad(labels, (0, 2)), position_count=positions, label_count=label_count
    )
    assert (grad[padding] == 0).all()
    for pair in range(7):
        num_positions, num_labels = int(positions[pair]), int(label_count[pair])
        alone = scores.detach()[pair : pair + 1, :num_positions, : 1 + num_labels].requires_grad_()
        counts = {
            "position_count": positions[pair : pair + 1],
            "label_count": label_count[pair : pair + 1],
        }
        one = labels[pair : pair + 1, :num_labels]
        (loss,) = ctc_loss(alone, one, **counts)
        (expected,) = torch.autograd.grad(loss, alone)
        torch.testing.assert_close(together[pair], loss, rtol=1e-12, atol=0)
        torch.testing.assert_close(
            grad[pair, :num_positions, : 1 + num_labels], expected[0], rtol=1e-9, atol=1e-14
        )
        single = best_alignment(alone, one, **counts)
        torch.testing.assert_close(best.log_probability[pair], single.log_probability[0])
        assert torch.equal(best.column[pair, :num_positions], single.column[0])
        assert (best.column[pair, num_positions:] == 0).all()


def test_posteriors_of_a_position_add_up_to_one(batch):
    """Whatever the target: each real position holds exactly one symbol."""
    logits, labels, positions, label_count = batch
    scores = choose(logits.detach().log_softmax(-1), labels).requires_grad_()
    loss = ctc_loss(scores, labels, position_count=positions, label_count=label_count)
    (grad,) = torch.autograd.grad(loss.sum(), scores)
    real = torch.arange(13) < positions[:, None]
    real[5:] = False  # the pairs that do not fit
    torch.testing.assert_close(-grad.sum(-1), real.double())


def test_as_many_labels_as_positions_by_hand():
    """There is one alignment, so the loss is the sum of its scores."""
    scores = torch.tensor([[[-9.0, -1, -2, -3], [-9, -4, -5, -6], [-9, -7, -8, -0.5]]])
    labels, count = torch.tensor([[5, 6, 5]]), torch.tensor([3])
    loss = ctc_loss(scores, labels, position_count=count, label_count=count)
    torch.testing.assert_close(loss, torch.tensor([1 + 5 + 0.5]))
    best = best_alignment(scores, labels, position_count=count, label_count=count)
    assert best.column.tolist() == [[1, 2, 3]]


def test_no_positions_and_no_labels():
    """An empty output writes the empty target with probability one, and no other."""
    scores = torch.zeros(2, 0, 3, requires_grad=True)
    counts = {"position_count": torch.tensor([0, 0]), "label_count": torch.tensor([0, 2])}
    labels = torch.tensor([[3, 4], [3, 4]])
    assert fits(labels, **counts).tolist() == [True, False]
    assert ctc_loss(scores, labels, **counts).tolist() == [0, 0]
    assert best_alignment(scores, labels, **counts).log_probability.tolist() == [0, -torch.inf]


def test_impossible_scores_give_an_infinite_loss_and_no_nan(batch):
    """A target with probability zero is no fault of its length: the loss says so."""
    logits, labels, positions, label_count = batch
    scores = choose(logits.detach().log_softmax(-1), labels)
    scores[0, :, 2] = -torch.inf  # a label that no position can write
    scores[2, 3, 0] = -torch.inf  # a blank that is not needed
    scores[3, 1:] = -torch.inf
    scores[3, :, 1] = torch.tensor([-3.0] + [-2.0] * 12)  # nothing but the label is possible
    scores.requires_grad_()
    loss = ctc_loss(scores, labels, position_count=positions, label_count=label_count)
    (grad,) = torch.autograd.grad(loss.sum(), scores)
    assert loss[0] == torch.inf
    assert loss[1:].isfinite().all()
    assert grad.isfinite().all()
    assert (grad[0] == 0).all()
    assert (grad[2, 3, 1:].sum() + 1).abs() < 1e-12
    # Pair 3 has one label and seven positions; the first may hold a blank or the label.
    torch.testing.assert_close(loss[3], 2.0 * 6 - torch.logaddexp(*scores[3, 0, :2]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_scores_are_added_up_in_fp32(batch, dtype):
    logits, labels, positions, label_count = batch
    # Differences of up to a thousand: a softmax that is nearly certain, and often wrong.
    low = choose((300 * logits.detach()).log_softmax(-1), labels).to(dtype).requires_grad_()
    exact = low.detach().double().requires_grad_()
    counts = {"position_count": positions, "label_count": label_count}
    ours, theirs = (ctc_loss(scores, labels, **counts) for scores in (low, exact))
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours.double(), theirs, rtol=1e-6, atol=0)
    (mine,) = torch.autograd.grad(ours.sum(), low)
    (other,) = torch.autograd.grad(theirs.sum(), exact)
    assert mine.dtype == dtype
    # Exponents are differences of sums of size 1e4, which fp32 knows to 1e-3.
    torch.testing.assert_close(mine.double(), other, rtol=0, atol=1e-2)


def test_scores_at_the_end_of_the_range_of_fp16():
    scores = torch.full((1, 7, 3), -65504.0, dtype=torch.float16, requires_grad=True)
    loss = ctc_loss(
        scores,
        torch.tensor([[2, 3]]),
        position_count=torch.tensor([7]),
        label_count=torch.tensor([2]),
    )
    (grad,) = torch.autograd.grad(loss.sum(), scores)
    assert loss.isfinite().all()
    torch.testing.assert_close(-grad.sum(-1).float(), torch.ones(1, 7), rtol=0, atol=0.04)


def test_no_gradient_is_computed_where_none_is_asked_for(batch):
    logits, labels, positions, label_count = batch
    scores = choose(logits.log_softmax(-1), labels)
    counts = {"position_count": positions, "label_count": label_count}
    plain = ctc_loss(scores.detach(), labels, **counts)
    assert not plain.requires_grad
    torch.testing.assert_close(plain, ctc_loss(scores, labels, **counts).detach(), rtol=0, atol=0)


def test_without_a_table_of_all_words(generator):
    """Scores of chosen tokens and the loss over them, against torch's over the whole vocabulary."""
    pairs, num_positions, dim, vocab = 3, 11, 5, 29
    hidden = torch.randn(pairs, num_positions, dim, generator=generator, dtype=torch.float64)
    weight = torch.randn(vocab, dim, generator=generator, dtype=torch.float64)
    hidden.requires_grad_()
    weight.requires_grad_()
    labels = torch.tensor([[4, 4, 28, 4], [17, 3, 0, 0], [6, 5, 5, 0]])
    positions, label_count = torch.tensor([11, 7, 9]), torch.tensor([4, 2, 3])
    candidates = torch.cat([torch.zeros(pairs, 1, dtype=torch.long), labels], dim=1)
    scores = score_tokens(
        hidden.flatten(0, 1),
        weight,
        candidates=candidates.repeat_interleave(num_positions, dim=0),
        chunk_size=7,
    ).view(pairs, num_positions, -1)
    ours = ctc_loss(scores, labels, position_count=positions, label_count=label_count)
    theirs = F.ctc_loss(
        (hidden @ weight.t()).log_softmax(-1).transpose(0, 1),
        labels,
        positions,
        label_count,
        reduction="none",
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=0)
    for mine, other in zip(
        torch.autograd.grad(ours.sum(), [hidden, weight]),
        torch.autograd.grad(theirs.sum(), [hidden, weight]),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-12)
