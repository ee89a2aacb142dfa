"""The kernels of CTC's recursion and of the softmax over words against their torch forms, in
Triton's interpreter on a CPU: run as a program, with TRITON_INTERPRET=1 (see test_kernels.py).
"""

import torch
from torch import Tensor

from headwise.gpu import ctc_recursion, softmax_rows
from headwise.randomness import torch_generator
from headwise.training.parallel import ctc

GENERATOR = torch_generator("interpreted ctc")
POSITIONS, LABELS = torch.tensor([9, 1, 4, 6]), torch.tensor([4, 1, 0, 5])


def make(spread: float) -> tuple[Tensor, Tensor]:
    """Symbols of four pairs, and which label repeats the one before it."""
    scores = spread * torch.randn(4, 10, 6, generator=GENERATOR)
    labels = torch.randint(4, 6, (4, 5), generator=GENERATOR)
    return ctc._lay_out(scores.log_softmax(-1)), ctc._find_repeats(labels)


def check_table() -> None:
    for spread in (1.0, 100.0):
        symbols, repeats = make(spread)
        for best in (False, True):
            found = ctc_recursion.run_recursion(symbols, repeats, POSITIONS, best=best)
            expected = ctc.run_recursion(symbols, repeats, best=best)
            for pair, count in enumerate(POSITIONS.tolist()):
                torch.testing.assert_close(
                    found[: count + 1, :, pair], expected[: count + 1, :, pair]
                )
                assert (found[count + 1 :, :, pair] == -torch.inf).all()


def check_trace() -> None:
    symbols, repeats = make(3.0)
    table = ctc.run_recursion(symbols, repeats, best=True)
    pointers, counts = ctc._point_back(table, repeats), ctc._RealLengths(POSITIONS, LABELS)
    start = ctc._final_states(table, counts).argmax(1) * 6 + LABELS
    found = ctc_recursion.trace_back(pointers, start, POSITIONS)
    assert torch.equal(found, ctc.trace_back(pointers, start, POSITIONS))


def check_normalizers() -> None:
    logits = 20 * torch.randn(5, 37, generator=GENERATOR)
    normalizers, tokens = softmax_rows.normalize(logits)
    torch.testing.assert_close(normalizers, logits.logsumexp(1, keepdim=True))
    assert torch.equal(tokens, logits.argmax(1))


def check_slopes() -> None:
    logits = torch.randn(5, 37, generator=GENERATOR, requires_grad=True)
    candidates = torch.randint(37, (5, 6), generator=GENERATOR)
    candidates[0] = 3  # one word six times
    grads = torch.randn(5, 6, generator=GENERATOR)
    grads[1] = 0
    (expected,) = torch.autograd.grad(logits.log_softmax(1).gather(1, candidates), logits, grads)
    found = logits.detach().clone()
    normalizers = found.logsumexp(1, keepdim=True)
    softmax_rows.put_slopes(found, normalizers, candidates, grads)
    torch.testing.assert_close(found, expected)
    assert (found[1] == 0).all(), "without gradients nothing is changed, to the bit"


if __name__ == "__main__":
    torch.set_num_threads(1)
    softmax_rows.WORDS = 16
    for check in (check_table, check_trace, check_normalizers, check_slopes):
        check()
        print(check.__name__)
