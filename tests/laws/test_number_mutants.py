"""The laws of numbers bite: a kernel that rounds more than its kind of number must, or shows
another map than it computes, is caught."""

from typing import Any

import pytest
import torch
from torch import Tensor

from headwise.attention.kernels.full import FullAttention
from headwise.attention.masks import Mask
from headwise.laws import kernel_laws as laws
from headwise.laws import precision_laws as number_laws
from headwise.laws.case import LawCase
from tests.laws.test_input_mutants import Faulty


def _plain(q: Any, k: Any, v: Any, mask: Mask, bias: Any, training: Any) -> Tensor:
    return FullAttention()(q, k, v, mask, bias=bias)


def _exponents_in_half(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    """The scores leave float32 unscaled, and their exponentials are added up in the input's own
    kind."""
    table = mask.dense(q.shape[2], k.shape[2], q.device)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5 + (0 if bias is None else bias)
    exponentials = scores.exp() if table is None else scores.exp() * table
    total = sum(exponentials[..., key : key + 1] for key in range(k.shape[2]))
    return (exponentials @ v) / torch.where(total > 0, total, 1)


class ForgetfulMap(Faulty):
    """Its map leaves the bias out; its output does not."""

    def weights(self, q: Any, k: Any, mask: Mask, *, bias: Any = None) -> Tensor:
        return FullAttention().weights(q, k, mask)


def test_a_kernel_that_rounds_too_often_is_caught_in_low_precision_only() -> None:
    row = LawCase(
        "mutant",
        lambda rate: Faulty(_exponents_in_half, rate),
        exact=lambda length: Faulty(_exponents_in_half),
    )
    laws.degenerate_case_is_exact(row)
    laws.degenerate_case_is_exact(row, torch.float32)
    with pytest.raises(AssertionError):
        laws.degenerate_case_is_exact(row, torch.bfloat16)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_a_map_that_is_not_what_was_computed_is_caught(dtype: torch.dtype) -> None:
    with pytest.raises(AssertionError):
        number_laws.weights_give_the_output(
            LawCase("mutant", lambda rate: ForgetfulMap(_plain, rate), exact=None), dtype
        )
    number_laws.weights_give_the_output(
        LawCase("sound", lambda rate: Faulty(_plain, rate), exact=None), dtype
    )
