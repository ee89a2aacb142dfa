"""One call checks a kernel by all laws, and says which of them it breaks."""

from dataclasses import replace

import pytest
import torch

from headwise.attention.kernels.full import Full, FullAttention
from headwise.laws import case_of, check
from headwise.laws.checking import all_laws


class Forgetful(FullAttention):
    """Full attention that looks at everything, whatever the mask."""

    def __call__(self, q, k, v, mask, *, bias=None, training=False):  # type: ignore[no-untyped-def]
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def test_a_sound_kernel_passes() -> None:
    check(Full(), exact=lambda length: FullAttention())


def test_broken_laws_are_named() -> None:
    case = replace(case_of(Full()), name="forgetful", build=Forgetful)
    with pytest.raises(AssertionError, match=r"forgetful breaks \d+ laws") as caught:
        check(case)
    for law in ("hidden_keys_cannot_leak", "empty_row_gives_zeros", "weights_give_the_output"):
        assert f"- {law}: " in str(caught.value)


def test_every_law_has_a_name_of_its_own() -> None:
    names = [name for name, _ in all_laws()]
    assert len(set(names)) == len(names)
