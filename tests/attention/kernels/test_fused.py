"""The fused kernel's own paths; that its numbers are those of full attention is a law
(tests/laws)."""

import pytest
import torch
import torch.nn.functional as F

from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention, VisibleTable
from headwise.attention.masks import Causal, Mask, causal, everything, explicit, segments

CPU = torch.device("cpu")


def test_structure_the_kernel_knows_builds_no_table() -> None:
    kernel = FusedAttention()
    assert kernel.prepare(everything(), 3, 5, CPU).parts == ()
    assert kernel.prepare(causal(), 5, 5, CPU).parts == (Causal(),)
    # torch's causal path starts the triangle at the top left; a shorter query needs a table.
    assert isinstance(kernel.prepare(causal(2), 3, 5, CPU).parts[0], VisibleTable)


def test_a_plain_causal_mask_takes_torchs_causal_path(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(
        F, "scaled_dot_product_attention", lambda q, k, v, **options: calls.append(options) or q
    )
    q = torch.zeros(1, 1, 3, 5)
    FusedAttention()(q, q, q, causal())
    FusedAttention()(q, q, q, everything())
    FusedAttention(0.25)(q, q, q, everything(), training=True)
    assert calls[0] == {"dropout_p": 0.0, "is_causal": True}
    assert calls[1] == {"dropout_p": 0.0}
    assert calls[2] == {"dropout_p": 0.25}


def test_a_prepared_table_remembers_its_empty_rows() -> None:
    numbers = torch.tensor([[1, 2, 0]])
    prepared = FusedAttention().prepare(segments(numbers, numbers), 3, 3, CPU)
    dense = segments(numbers, numbers).dense(3, 3, CPU)
    assert prepared.dense(3, 3, CPU).equal(dense)
    assert prepared.parts[0].opened.any(-1).all()


def test_no_keys_at_all_give_zeros() -> None:
    q, nothing = torch.randn(2, 3, 5, 7), torch.zeros(2, 3, 0, 7)
    hidden = explicit(torch.zeros(1, 1, 5, 0, dtype=torch.bool))
    for mask in (Mask(), hidden):
        assert FusedAttention()(q, nothing, nothing, mask).eq(0).all()
        assert FullAttention()(q, nothing, nothing, mask).eq(0).all()
