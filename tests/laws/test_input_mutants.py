"""The laws of bad input bite: full attention with a known fault is caught by the law that forbids
it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from headwise.attention.biases import VectorBias
from headwise.attention.kernels.full import FullAttention
from headwise.attention.masks import Mask
from headwise.laws import input_laws
from headwise.laws.case import LawCase
from tests.laws.test_mutants import Attend, Mutant


class Faulty(Mutant):
    def weights(self, q: Any, k: Any, mask: Mask, *, bias: Any = None) -> Tensor:
        return FullAttention().weights(q, k, mask, bias=bias)


def _dies_when_low(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    features = [x.exp() for x in (q, k)]
    products = features[0] @ features[1].mT
    total = products.sum(-1, keepdim=True)
    return products / torch.where(total > 0, total, 1) @ v


def _divides_by_lengths_in_half(
    q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any
) -> Tensor:
    return FullAttention()(q, torch.nn.functional.normalize(k, dim=-1), v, mask, bias=bias)


def _forgets_vectors(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    return FullAttention()(
        q, k, v, mask, bias=bias.scores if isinstance(bias, VectorBias) else bias
    )


def _invents_for_no_keys(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    return FullAttention()(q, k, v, mask, bias=bias) + (k.shape[2] == 0)


MUTANTS: tuple[tuple[Attend, Callable[[LawCase], None]], ...] = (
    (_dies_when_low, input_laws.low_stays_alive),
    (_divides_by_lengths_in_half, input_laws.half_stays_alive),
    (_forgets_vectors, input_laws.vectors_are_added_or_refused),
    (_invents_for_no_keys, input_laws.nothing_gives_nothing),
)


@pytest.mark.parametrize(("attend", "law"), MUTANTS, ids=lambda value: value.__name__)
def test_a_faulty_kernel_is_caught(attend: Attend, law: Callable[[LawCase], None]) -> None:
    row = LawCase(
        "full/mutant",
        lambda rate: Faulty(attend, rate),
        exact=lambda length: Faulty(attend),
        takes_vectors=True,
    )
    with pytest.raises(AssertionError):
        law(row)


@pytest.mark.parametrize("law", input_laws.INPUT_LAWS, ids=lambda law: law.__name__)
def test_the_reference_passes(law: Callable[[LawCase], None]) -> None:
    def attend(q: Any, k: Any, v: Any, mask: Mask, bias: Any, training: Any) -> Tensor:
        return FullAttention()(q, k, v, mask, bias=bias)

    law(
        LawCase(
            "full/sound",
            lambda rate: Faulty(attend, rate),
            exact=lambda length: Faulty(attend),
            takes_vectors=True,
        )
    )
