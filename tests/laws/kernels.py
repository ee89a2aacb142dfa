"""The table of attention kernels that must obey the laws. A new kernel is ONE ROW here.

To add a kernel, append a `Row` to `KERNELS`:

    Row("window", lambda rate: WindowAttention(3, rate), exact=lambda length: WindowAttention(length), refuses=(...))

- `build` takes a dropout rate and gives the kernel with ordinary settings (a small window, a low rank, few buckets).
- `exact` takes a length and gives the kernel set so that it must equal full attention on sequences of that length:
  a window at least that long, the full rank, one bucket. None if there is no such setting.
- `reference` is what `exact` must equal: full attention, unless the kernel's weights are of another kind (linear attention
  equals its own table of products).
- `refuses` lists the masks of `scenes.PARTS` the kernel cannot honour. It must raise MaskError for them, in a message that
  names a kernel of this table that can; all other laws then leave those masks out.
- `takes_bias` and `order_free` (does the order of the keys not matter when the mask follows it?) are True for most.

Then `pytest tests/laws -k <name>` runs every law of `laws.py` over it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwise.attention.full import FullAttention
from headwise.attention.fused import FusedAttention
from headwise.attention.linear import LinearAttention
from headwise.attention.multi_head import Kernel
from headwise.attention.performer import PerformerAttention, draw_features
from headwise.attention.window import WindowAttention
from headwise.randomness import torch_generator
from tests.laws.references import QuadraticLinear, QuadraticPerformer


@dataclass(frozen=True)
class Row:
    name: str
    build: Callable[[float], Kernel]
    exact: Callable[[int], Kernel] | None
    refuses: tuple[str, ...] = ()
    takes_bias: bool = True
    order_free: bool = True
    reference: Callable[[], Any] = FullAttention


KERNELS: tuple[Row, ...] = (
    Row("full", FullAttention, exact=lambda length: FullAttention()),
    Row("fused", FusedAttention, exact=lambda length: FusedAttention()),
    Row(
        "window",
        lambda rate: WindowAttention(2, 1, rate, block=2),
        exact=lambda length: WindowAttention(2 * length, length, block=3),  # a causal offset moves queries on
        order_free=False,
    ),
    Row(
        "linear",
        lambda rate: LinearAttention(rate, chunk=2),
        exact=lambda length: LinearAttention(chunk=3),
        refuses=("window", "explicit"),
        takes_bias=False,
        reference=QuadraticLinear,
    ),
    Row(
        "performer",
        lambda rate: PerformerAttention(11, 17, dropout_rate=rate, chunk=2),
        exact=lambda length: PerformerAttention(11, 17, chunk=3),
        refuses=("window", "explicit"),
        takes_bias=False,
        reference=lambda: QuadraticPerformer(draw_features(17, 11, torch_generator("performer"))),
    ),
)
