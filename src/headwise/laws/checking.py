"""`check`: tests one kernel against all laws. The author of a kernel calls it.

    from headwise.laws import check
    check(Laplace(width=2.0))     # raises AssertionError and names the laws that are broken

The formulas of cost that the kernel declares are compared with what torch counts (cost_laws.py).

If a kernel equals another one in some setting, the caller says so, and the two are compared:

    check(Laplace(), exact=lambda length: …, reference=lambda: …)
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from headwise.attention.capabilities import AttentionKind
from headwise.attention.multi_head import Kernel
from headwise.laws.case import LawCase, case_of
from headwise.laws.cost_laws import COST_LAWS
from headwise.laws.input_laws import INPUT_LAWS
from headwise.laws.kernel_laws import LAWS, LAWS_OF_EVERY_TYPE
from headwise.laws.packing_laws import PACKING_LAWS
from headwise.laws.precision_laws import PRECISION_LAWS, weights_give_the_output

Law = Callable[[LawCase], None]


def all_laws() -> Iterator[tuple[str, Law]]:
    """Every law with its name, in double precision and in the types that models are trained in."""
    for law in (*LAWS, *PACKING_LAWS, *INPUT_LAWS, *PRECISION_LAWS):
        yield law.__name__, law
    typed: tuple[Callable[[LawCase, torch.dtype], None], ...] = (
        *LAWS_OF_EVERY_TYPE,
        weights_give_the_output,
    )
    for low in typed:
        for dtype in (torch.float32, torch.bfloat16):
            yield f"{low.__name__} in {dtype}".replace("torch.", ""), _in_type(low, dtype)


def _in_type(law: Callable[[LawCase, torch.dtype], None], dtype: torch.dtype) -> Law:
    return lambda case: law(case, dtype)


def check(
    kernel: AttentionKind | LawCase,
    *,
    exact: Callable[[int], Kernel] | None = None,
    reference: Callable[[], Any] | None = None,
) -> None:
    """Run every law; the AssertionError names each law that is broken, and how."""
    case = case_of(kernel) if isinstance(kernel, AttentionKind) else kernel
    if exact is not None:
        case = replace(case, exact=exact, reference=reference or case.reference)
    broken = []
    asked = [(name, partial(law, case)) for name, law in all_laws()]
    if isinstance(kernel, AttentionKind):
        asked += [(law.__name__, partial(law, kernel)) for law in COST_LAWS]
    for name, law in asked:
        try:
            law()
        except Exception as error:  # a law is broken by whatever the kernel does instead
            broken.append(f"  - {name}: {type(error).__name__}: {error}")
    if broken:
        raise AssertionError(f"{case.name} breaks {len(broken)} laws:\n" + "\n".join(broken))
