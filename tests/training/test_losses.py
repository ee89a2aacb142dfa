import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from headwise.text.tokenizer import PAD
from headwise.training import losses
from headwise.training.losses import choose_chunk_size, cross_entropy

TOKENS, DIM, VOCAB = 23, 7, 17


@pytest.fixture
def case(generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    hidden = torch.randn(TOKENS, DIM, generator=generator, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(VOCAB, DIM, generator=generator, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(VOCAB, generator=generator, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(1, VOCAB, (TOKENS,), generator=generator)
    targets[[2, 11, TOKENS - 1]] = PAD
    return hidden, weight, bias, targets


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.37])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("chunk_size", [1, 5, TOKENS, 64])
def test_equals_torch_with_its_gradients(case, smoothing, with_bias, chunk_size):
    hidden, weight, bias, targets = case
    used = bias if with_bias else None
    ours = cross_entropy(
        hidden, weight, targets=targets, bias=used, smoothing=smoothing, chunk_size=chunk_size
    )
    theirs = F.cross_entropy(
        F.linear(hidden, weight, used),
        targets,
        ignore_index=PAD,
        label_smoothing=smoothing,
        reduction="sum",
    )
    torch.testing.assert_close(ours.loss, theirs, rtol=1e-12, atol=1e-12)
    learnt = [hidden, weight] + ([bias] if with_bias else [])
    # A factor beside the sum: backward must scale what the forward pass prepared.
    for mine, other in zip(
        torch.autograd.grad(ours.loss * 0.3, learnt),
        torch.autograd.grad(theirs * 0.3, learnt),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, rtol=1e-11, atol=1e-12)


def test_gradcheck(case):
    hidden, weight, bias, targets = case

    def loss(*learnt: Tensor) -> Tensor:
        return cross_entropy(
            *learnt[:2], targets=targets, bias=learnt[2], smoothing=0.1, chunk_size=5
        ).loss

    assert torch.autograd.gradcheck(loss, (hidden, weight, bias))


def test_counts_and_likelihood_leave_padding_out(case):
    hidden, weight, bias, targets = case
    sums = cross_entropy(
        hidden, weight, targets=targets, bias=bias, smoothing=0.1, count_correct=True, chunk_size=4
    )
    scores = F.linear(hidden, weight, bias).log_softmax(-1)
    counted = targets != PAD
    expected = -scores.gather(1, targets[:, None])[counted].sum()
    torch.testing.assert_close(sums.negative_log_likelihood, expected.detach())
    assert sums.num_tokens == TOKENS - 3
    assert sums.num_correct == (scores.argmax(-1) == targets)[counted].sum()
    assert not sums.negative_log_likelihood.requires_grad
    grad = torch.autograd.grad(sums.loss, hidden)[0]
    assert (grad[~counted] == 0).all()
    assert (grad[counted] != 0).any(dim=-1).all()


def test_same_sums_without_gradients(case):
    hidden, weight, _, targets = case
    with torch.no_grad():
        plain = cross_entropy(hidden, weight, targets=targets, smoothing=0.1, chunk_size=5)
    assert not plain.loss.requires_grad
    torch.testing.assert_close(
        plain.loss,
        cross_entropy(hidden, weight, targets=targets, smoothing=0.1, chunk_size=5).loss.detach(),
    )
    assert plain.num_correct is None


def test_uniform_logits_by_hand():
    sums = cross_entropy(
        torch.zeros(3, 2), torch.ones(5, 2), targets=torch.tensor([1, 4, PAD]), smoothing=0.2
    )
    assert math.isclose(float(sums.loss), 2 * math.log(5), rel_tol=1e-6)
    assert math.isclose(float(sums.negative_log_likelihood), 2 * math.log(5), rel_tol=1e-6)


def test_all_padding_is_zero(case):
    hidden, weight, _, targets = case
    sums = cross_entropy(hidden, weight, targets=torch.zeros_like(targets), smoothing=0.1)
    grads = torch.autograd.grad(sums.loss, [hidden, weight])
    assert sums.loss == 0
    assert sums.num_tokens == 0
    assert all((grad == 0).all() for grad in grads)


def test_bf16_autocast_is_near_the_float64_value(case):
    hidden, weight, _, targets = (t.detach() for t in case)
    exact_h, exact_w = hidden.clone().requires_grad_(), weight.clone().requires_grad_()
    exact = cross_entropy(exact_h, exact_w, targets=targets, smoothing=0.1).loss
    exact.backward()
    low_h, low_w = hidden.float().requires_grad_(), weight.float().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = cross_entropy(low_h, low_w, targets=targets, smoothing=0.1, chunk_size=5).loss
    low.backward()
    assert low.dtype == torch.float32
    assert low_w.grad is not None
    assert low_w.grad.dtype == torch.float32
    # bf16 has 8 bits: logits of size 10 are off by 0.04 at most.
    torch.testing.assert_close(low.double(), exact, rtol=1e-2, atol=0)
    assert (low_w.grad.double() - exact_w.grad).norm() < 0.02 * exact_w.grad.norm()
    assert (low_h.grad.double() - exact_h.grad).norm() < 0.02 * exact_h.grad.norm()


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
    tokens, dim, vocab, chunk = 331, 13, 101, 31
    hidden = torch.randn(tokens, dim, generator=generator).requires_grad_()
    weight = torch.randn(vocab, dim, generator=generator).requires_grad_()
    targets = torch.randint(0, vocab, (tokens,), generator=generator)
    with (
        LargestTensor() as seen,
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16),
    ):
        loss = cross_entropy(hidden, weight, targets=targets, smoothing=0.1, chunk_size=chunk).loss
        loss.backward()
    assert seen.elements == max(chunk * vocab, tokens * dim)
    assert seen.elements < tokens * vocab / 7


def test_compiles_without_a_graph_break(case):
    hidden, weight, _, targets = case
    compiled = torch.compile(cross_entropy, backend="aot_eager", fullgraph=True, dynamic=False)
    plain = cross_entropy(hidden, weight, targets=targets, smoothing=0.1, chunk_size=5)
    traced = compiled(hidden, weight, targets=targets, smoothing=0.1, chunk_size=5)
    torch.testing.assert_close(tuple(traced[:3]), tuple(plain[:3]), rtol=1e-12, atol=0)
    torch.testing.assert_close(
        torch.autograd.grad(traced.loss, [hidden, weight]),
        torch.autograd.grad(plain.loss, [hidden, weight]),
    )


def test_chunks_are_even_and_bounded():
    assert choose_chunk_size(100, 50, device="cpu") == 128
    size = choose_chunk_size(8192, 8000, device="cpu")
    assert size % 64 == 0
    assert (size - 64) * 8000 <= losses.CHUNK_LOGITS_CPU
    assert choose_chunk_size(8192, 8000, device="cuda") == 4096
    assert choose_chunk_size(3, 10**9, device="cpu") == 64
