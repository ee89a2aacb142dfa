import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from headwise.training.parallel.token_scores import best_tokens, score_tokens

POSITIONS, DIM, VOCAB, CANDIDATES = 23, 7, 17, 5


@pytest.fixture
def case(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    hidden, weight, bias = (
        torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((POSITIONS, DIM), (VOCAB, DIM), (VOCAB,))
    )
    candidates = torch.randint(0, VOCAB, (POSITIONS, CANDIDATES), generator=generator)
    candidates[3] = 11  # the same token in every column
    candidates[:, 4] = candidates[:, 1]
    return hidden, weight, bias, candidates


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("chunk_size", [1, 5, POSITIONS, None])
def test_equals_the_table_of_all_words_with_its_gradients(case, with_bias, chunk_size, generator):
    hidden, weight, bias, candidates = case
    used = bias if with_bias else None
    ours = score_tokens(hidden, weight, candidates=candidates, bias=used, chunk_size=chunk_size)
    theirs = F.linear(hidden, weight, used).log_softmax(-1).gather(1, candidates)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    factors = torch.randn(ours.shape, generator=generator, dtype=torch.float64)
    learnt = [hidden, weight] + ([bias] if with_bias else [])
    for mine, other in zip(
        torch.autograd.grad((ours * factors).sum(), learnt),
        torch.autograd.grad((theirs * factors).sum(), learnt),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, rtol=1e-11, atol=1e-12)


def test_gradcheck(case):
    hidden, weight, bias, candidates = case

    def scores(*learnt: Tensor) -> Tensor:
        return score_tokens(*learnt[:2], candidates=candidates, bias=learnt[2], chunk_size=5)

    assert torch.autograd.gradcheck(scores, (hidden, weight, bias))


def test_a_position_whose_scores_are_not_used_has_no_gradient(case):
    hidden, weight, bias, candidates = case
    used = torch.zeros(POSITIONS, 1)
    used[:7] = 1
    scores = score_tokens(hidden, weight, candidates=candidates, bias=bias, chunk_size=4)
    (grad,) = torch.autograd.grad((scores * used).sum(), hidden)
    assert (grad[7:] == 0).all()
    assert (grad[:7] != 0).any(dim=1).all()


@pytest.mark.parametrize("chunk_size", [1, 5, None])
def test_best_tokens_are_those_of_the_whole_table(case, chunk_size):
    hidden, weight, bias, _ = case
    table = F.linear(hidden, weight, bias).log_softmax(-1)
    best = best_tokens(hidden, weight, bias=bias, chunk_size=chunk_size)
    assert not best.log_probability.requires_grad
    assert torch.equal(best.token, table.argmax(-1))
    torch.testing.assert_close(best.log_probability, table.amax(-1))
    excluded = tuple(best.token.unique()[:3].tolist())
    second = best_tokens(hidden, weight, bias=bias, excluded=excluded, chunk_size=chunk_size)
    # The others keep the probability that they have beside the excluded ones.
    allowed = table.index_fill(1, torch.tensor(excluded), -torch.inf)
    assert torch.equal(second.token, allowed.argmax(-1))
    torch.testing.assert_close(second.log_probability, allowed.amax(-1))


def test_bf16_autocast_is_near_the_float64_value(case):
    hidden, weight, _, candidates = (tensor.detach() for tensor in case)
    exact_learnt = [hidden.clone().requires_grad_(), weight.clone().requires_grad_()]
    exact = score_tokens(*exact_learnt, candidates=candidates)
    exact.mean().backward()
    low_learnt = [tensor.float().requires_grad_() for tensor in (hidden, weight)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = score_tokens(*low_learnt, candidates=candidates, chunk_size=5)
        best = best_tokens(*low_learnt)
    low.mean().backward()
    assert low.dtype == best.log_probability.dtype == torch.float32
    # bf16 has 8 bits: logits of size 10 are off by 0.04 at most, and their normalizer as much.
    torch.testing.assert_close(low.double(), exact, rtol=0, atol=0.08)
    for learnt, other in zip(low_learnt, exact_learnt, strict=True):
        assert learnt.grad.dtype == torch.float32
        assert (learnt.grad.double() - other.grad).norm() < 0.02 * other.grad.norm()


def test_no_positions():
    weight = torch.ones(VOCAB, DIM, requires_grad=True)
    scores = score_tokens(
        torch.zeros(0, DIM), weight, candidates=torch.zeros(0, CANDIDATES, dtype=torch.long)
    )
    (grad,) = torch.autograd.grad(scores.sum(), weight)
    assert scores.shape == (0, CANDIDATES)
    assert (grad == 0).all()
    assert best_tokens(torch.zeros(0, DIM), weight).token.shape == (0,)


class LargestTensor(TorchDispatchMode):
    """Watches every result of every operation."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, Tensor):
                self.elements = max(self.elements, tensor.numel())
        return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_never_holds_all_logits(dtype, generator):
    positions, dim, vocab, chunk = 331, 13, 101, 31
    hidden = torch.randn(positions, dim, generator=generator).requires_grad_()
    weight = torch.randn(vocab, dim, generator=generator).requires_grad_()
    candidates = torch.randint(0, vocab, (positions, CANDIDATES), generator=generator)
    with (
        LargestTensor() as seen,
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16),
    ):
        score_tokens(hidden, weight, candidates=candidates, chunk_size=chunk).sum().backward()
        best_tokens(hidden, weight, excluded=(1, 2), chunk_size=chunk)
    assert seen.elements == max(chunk * vocab, positions * dim)
    assert seen.elements < positions * vocab / 7
