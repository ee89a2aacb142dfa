"""The laws bite: a kernel with a known fault is caught by the law that forbids it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from headwise.attention.kernels.full import FullAttention
from headwise.attention.masks import Causal, Explicit, Mask, Padding, Segments
from headwise.errors import MaskError
from headwise.laws import kernel_laws as laws
from headwise.laws import packing_laws as company_laws
from headwise.laws import precision_laws as number_laws
from headwise.laws.case import LawCase

Attend = Callable[[Tensor, Tensor, Tensor, Mask, Tensor | None, bool], Tensor]


@dataclass(frozen=True)
class Mutant:
    """Full attention with its call replaced."""

    attend: Attend
    dropout_rate: float = 0.0

    def prepare(self, mask: Mask, num_queries: int, num_keys: int, device: torch.device) -> Mask:
        return mask

    def __call__(
        self, q: Any, k: Any, v: Any, mask: Mask, *, bias: Any = None, training: bool = False
    ) -> Tensor:
        return self.attend(q, k, v, mask, bias, training)


def _plain(q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
    return FullAttention()(q, k, v, mask, bias=bias)


def _deaf_to_masks(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    return _plain(q, k, v, Mask(), bias)


def _slightly_leaky(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    """-20 instead of minus infinity: hidden keys keep a billionth of the weight."""
    table = mask.dense(q.shape[2], k.shape[2], q.device)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5 + (0 if bias is None else bias)
    return (scores if table is None else scores.masked_fill(~table, -20.0)).softmax(-1) @ v


def _nan_on_empty(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    table = mask.dense(q.shape[2], k.shape[2], q.device)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5 + (0 if bias is None else bias)
    return (scores if table is None else scores.masked_fill(~table, -torch.inf)).softmax(-1) @ v


def _mixes_the_batch(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    return _plain(q, k, v, mask, bias) + 1e-3 * q.mean()


def _always_single(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    return _plain(q.float(), k.float(), v.float(), mask, None if bias is None else bias.float())


def _cut_gradient(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    return _plain(q, k.detach() + 0 * k, v, mask, bias)


def _unscaled(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    return _plain(q * q.shape[-1] ** 0.5, k, v, mask, bias)


def _forgets_the_offset(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    parts = tuple(Causal() if isinstance(part, Causal) else part for part in mask.parts)
    return _plain(q, k, v, Mask(parts), bias)


def _knows_the_place(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    return _plain(q, k + torch.arange(k.shape[2], dtype=k.dtype)[:, None], v, mask, bias)


def _first_part_only(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    return _plain(q, k, v, Mask(mask.parts[:1]), bias)


def _ignores_the_bias(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    return _plain(q, k, v, mask)


def _counts_the_row(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    return _plain(q, k, v, mask, bias) / k.shape[2]


def _calculates_with_numbers(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    """Four places for each sentence, in the type of its number: small ones have room, others come
    round to the same place."""
    parts = [
        Segments(4 * part.query, 4 * part.key) if isinstance(part, Segments) else part
        for part in mask.parts
    ]
    return _plain(q, k, v, Mask(tuple(parts)), bias)


def _forgets_what_is_said_once(
    q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any
) -> Tensor:
    parts = tuple(part for part in mask.parts if part.sizes[0] == mask.sizes[0])
    return _plain(q, k, v, Mask(parts), bias)


def _unscaled_dropout(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    output = _plain(q, k, v, mask, bias)
    return output * (torch.rand_like(output) < 0.5) if training else output


def _silent_refusal(q: Any, k: Any, v: Any, mask: Any, bias: Any, training: Any) -> Tensor:
    if any(isinstance(part, Explicit) for part in mask.parts):
        raise MaskError("no explicit masks here; use another", "不支持；请换一个")
    return _plain(q, k, v, mask, bias)


MUTANTS: tuple[tuple[Attend, Callable[[LawCase], None]], ...] = (
    (_deaf_to_masks, laws.hidden_keys_cannot_leak),
    (_slightly_leaky, laws.hidden_keys_cannot_leak),
    (_nan_on_empty, laws.empty_row_gives_zeros),
    (_mixes_the_batch, laws.batched_is_one_by_one),
    (_always_single, number_laws.keeps_dtype_and_device),
    (_forgets_the_offset, laws.stepping_is_the_whole),
    (_unscaled, laws.degenerate_case_is_exact),
    (_ignores_the_bias, laws.degenerate_case_is_exact),
    (_cut_gradient, laws.degenerate_case_is_exact),
    (_knows_the_place, laws.order_of_keys_is_free),
    (_first_part_only, laws.hidden_keys_cannot_leak),
    (_deaf_to_masks, company_laws.packed_is_one_by_one),
    (_counts_the_row, company_laws.padded_is_one_by_one),
    (_calculates_with_numbers, company_laws.numbers_are_names),
    (_forgets_what_is_said_once, company_laws.one_row_is_for_all),
    (_unscaled_dropout, laws.dropout_keeps_the_mean),
)


@pytest.mark.parametrize(("attend", "law"), MUTANTS, ids=lambda value: value.__name__)
def test_a_faulty_kernel_is_caught(attend: Attend, law: Callable[[LawCase], None]) -> None:
    row = LawCase("mutant", lambda rate: Mutant(attend, rate), exact=lambda length: Mutant(attend))
    with pytest.raises(AssertionError):
        law(row)


def test_a_cut_gradient_is_caught_by_finite_differences() -> None:
    with pytest.raises(AssertionError, match="between a derivative and a difference"):
        laws.gradients_hold(LawCase("mutant", lambda rate: Mutant(_cut_gradient, rate), exact=None))


def test_a_refusal_without_a_way_out_is_caught() -> None:
    with pytest.raises(AssertionError, match="no way out in"):
        laws.refusals_name_a_way_out(
            LawCase(
                "mutant",
                lambda rate: Mutant(_silent_refusal, rate),
                exact=None,
                refuses=("explicit",),
            )
        )


def test_a_kernel_that_refuses_and_names_a_way_out_passes() -> None:
    def refuse(q: Any, k: Any, v: Any, mask: Mask, bias: Any, training: Any) -> Tensor:
        if any(isinstance(part, Padding) for part in mask.parts):
            raise MaskError(
                "no padding here; use attention.kind=fused", "不支持填充；请用 attention.kind=fused"
            )
        return _plain(q, k, v, mask, bias)

    row = LawCase(
        "choosy",
        lambda rate: Mutant(refuse, rate),
        exact=lambda length: Mutant(refuse),
        refuses=("padding",),
    )
    for law in laws.LAWS:
        if law is not laws.dropout_keeps_the_mean:
            law(row)
