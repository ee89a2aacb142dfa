"""Every kernel of the table under every law. Add a kernel in kernels.py, a law in laws.py or input_laws.py; nothing to do here."""

from collections.abc import Callable
from typing import get_args

import pytest

from headwise.attention.choices import AttentionSettings
from tests.laws.input_laws import INPUT_LAWS
from tests.laws.kernels import KERNELS, Row
from tests.laws.laws import LAWS
from tests.laws.scenes import PARTS


@pytest.mark.parametrize("law", [*LAWS, *INPUT_LAWS], ids=lambda law: law.__name__)
@pytest.mark.parametrize("row", KERNELS, ids=lambda row: row.name)
def test_law(row: Row, law: Callable[[Row], None]) -> None:
    law(row)


def test_every_kernel_a_recipe_may_name_is_in_the_table() -> None:
    union = get_args(AttentionSettings)[0]
    kinds = {member.model_fields["kind"].default for member in get_args(union) or (union,)}
    assert kinds == {row.kind for row in KERNELS}


def test_refusals_are_masks_that_exist() -> None:
    assert all(set(row.refuses) <= set(PARTS) for row in KERNELS)
