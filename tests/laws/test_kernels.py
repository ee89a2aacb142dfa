"""Every kernel under every law; a new kernel or a new law needs no change here."""

from collections.abc import Callable

import pytest
import torch

from headwise.laws.case import LawCase
from headwise.laws.input_laws import INPUT_LAWS
from headwise.laws.kernel_laws import LAWS, LAWS_OF_EVERY_TYPE
from headwise.laws.packing_laws import PACKING_LAWS
from headwise.laws.precision_laws import PRECISION_LAWS, weights_give_the_output
from headwise.laws.random_inputs import PARTS
from tests.laws.kernels import KERNELS


@pytest.mark.parametrize(
    "law", [*LAWS, *PACKING_LAWS, *INPUT_LAWS, *PRECISION_LAWS], ids=lambda law: law.__name__
)
@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_law(row: LawCase, law: Callable[[LawCase], None]) -> None:
    law(row)


@pytest.mark.parametrize(
    "law", [*LAWS_OF_EVERY_TYPE, weights_give_the_output], ids=lambda law: law.__name__
)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16], ids=lambda dtype: str(dtype).removeprefix("torch.")
)
@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_law_in_low_precision(
    row: LawCase, dtype: torch.dtype, law: Callable[[LawCase, torch.dtype], None]
) -> None:
    law(row, dtype)


def test_refusals_are_masks_that_exist() -> None:
    assert all(set(row.refuses) <= set(PARTS) for row in KERNELS)
