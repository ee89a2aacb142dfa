"""Every kernel of the table under every law. Add a kernel in kernels.py, a law in laws.py or a file beside it; nothing to do here."""

from collections.abc import Callable
from typing import get_args

import pytest
import torch

from headwise.attention.choices import AttentionSettings
from tests.laws.company_laws import COMPANY_LAWS
from tests.laws.input_laws import INPUT_LAWS
from tests.laws.kernels import KERNELS, Row
from tests.laws.laws import LAWS, LAWS_OF_EVERY_TYPE
from tests.laws.number_laws import NUMBER_LAWS, weights_give_the_output
from tests.laws.scenes import PARTS


@pytest.mark.parametrize(
    "law", [*LAWS, *COMPANY_LAWS, *INPUT_LAWS, *NUMBER_LAWS], ids=lambda law: law.__name__
)
@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_law(row: Row, law: Callable[[Row], None]) -> None:
    law(row)


@pytest.mark.parametrize(
    "law", [*LAWS_OF_EVERY_TYPE, weights_give_the_output], ids=lambda law: law.__name__
)
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16], ids=lambda dtype: str(dtype).removeprefix("torch.")
)
@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_law_in_low_precision(
    row: Row, dtype: torch.dtype, law: Callable[[Row, torch.dtype], None]
) -> None:
    law(row, dtype)


def test_every_kernel_a_recipe_may_name_is_in_the_table() -> None:
    union = get_args(AttentionSettings)[0]
    kinds = {member.model_fields["kind"].default for member in get_args(union) or (union,)}
    assert kinds == {row.kind for row in KERNELS}


def test_refusals_are_masks_that_exist() -> None:
    assert all(set(row.refuses) <= set(PARTS) for row in KERNELS)
