"""The options of `headwise compare attention`: which kernels, and under which conditions.

`auto` chooses conditions that suit this machine.
"""

import difflib
from typing import Literal

from headwise.attention.capabilities import AttentionKind
from headwise.comparing.attention import known_kernels
from headwise.comparing.attention_measurement import Conditions
from headwise.errors import UsageError
from headwise.training.precision import Device, choose_device


def choose_kernels(names: str | None) -> dict[str, AttentionKind]:
    """The named kernels, or all of them."""
    known = known_kernels()
    if names is None:
        return known
    wanted = [name.strip() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint_en, hint_zh = (
                (f"did you mean {near[0]!r}? ", f"是否想写 {near[0]!r}？") if near else ("", "")
            )
            raise UsageError(
                f"there is no attention kernel {name!r}; {hint_en}choose from {', '.join(known)}",
                f"没有注意力内核 {name!r}；{hint_zh}可选：{'、'.join(known)}",
            )
    return {name: known[name] for name in wanted}


def choose_conditions(
    *,
    device: Device,
    precision: Literal["auto", "fp32", "bf16"],
    compiling: Literal["auto", "on", "off"],
    heads: int,
    head_dim: int,
    batch: int,
    causal: bool,
) -> Conditions:
    """On a GPU the conditions of training (bf16, compiled), on a CPU fp32 without compilation."""
    place: Literal["cpu", "cuda"] = "cuda" if choose_device(device).type == "cuda" else "cpu"
    chosen = ("bf16" if place == "cuda" else "fp32") if precision == "auto" else precision
    compiled = place == "cuda" if compiling == "auto" else compiling == "on"
    return Conditions(
        place, chosen, heads=heads, head_dim=head_dim, batch=batch, causal=causal, compiled=compiled
    )
