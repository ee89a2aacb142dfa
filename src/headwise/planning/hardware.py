"""Lists the speed, bandwidth and memory of machines, measured or published, for predictions.

Published peaks are not reached in practice. `EFFICIENCY` and `COPY` are the shares that we measured
on one H200 (docs/experiments) and assume for similar cards; a prediction for a card that was not
measured says so.
"""

from dataclasses import dataclass, replace

GIB = 1 << 30
TERA, GIGA = 1e12, 1e9

ATTENTION = 0.079
"""Share of the published dense peak that fused attention reaches on rows of 128 tokens: 78 TFLOP/s
on an H200."""
SHORTEST_PRODUCT = 5e-6
"""Seconds of the smallest matrix product on an H200; widths of 128 and 256 are at this limit."""
EFFICIENCY = 0.61
"""Share of the published dense bf16 peak that the matrix products of a Transformer reach: 604 of
989 TFLOP/s on an H200 (8192³: 794)."""
COPY = 0.89
"""Share of the published bandwidth that a copy reaches: 4.28 of 4.8 TB/s."""
HEADROOM = 0.92
"""Share of GPU memory that tensors may fill; driver, libraries and fragmentation need the rest."""


@dataclass(frozen=True)
class Hardware:
    """One device and its links. Rates in units a second, memory in bytes."""

    name: str
    kind: str
    """cpu or cuda."""
    bf16_flops: float
    fp32_flops: float
    bandwidth: float
    """Bytes read plus bytes written."""
    memory: float
    launch_seconds: float
    """From the start of one operation to the next, when launched from Python."""
    attention_flops: float
    """What fused attention reaches; it is listed separately because narrow widths do not slow it
    down."""
    shortest_product: float = 0.0
    """Least seconds of a matrix product; 0 if speed was measured at the real shapes."""
    heap: float = 1.0
    """Bytes that the allocator holds for each byte in use."""
    link: float = 0.0
    """Bytes a second that one device sends in an all-reduce while all of them do."""
    measured: bool = False
    """Whether the numbers were measured on this machine."""

    def product_flops(self, *, bf16: bool) -> float:
        return self.bf16_flops if bf16 else self.fp32_flops

    def with_limits(self, *, memory: float | None = None, link: float | None = None) -> "Hardware":
        return replace(self, memory=memory or self.memory, link=link or self.link)


def _card(
    name: str, *, bf16: float, tf32: float, bandwidth: float, memory: float, link: float
) -> Hardware:
    return Hardware(
        name=name,
        kind="cuda",
        bf16_flops=bf16 * TERA * EFFICIENCY,
        fp32_flops=tf32 * TERA * EFFICIENCY,
        bandwidth=bandwidth * GIGA * COPY,
        memory=memory * GIB * HEADROOM,
        launch_seconds=18e-6,
        attention_flops=bf16 * TERA * ATTENTION,
        shortest_product=SHORTEST_PRODUCT,
        link=link * GIGA,
    )


GLIBC_HEAP = 1.25
"""The CPU allocator keeps freed blocks that are too small for the next tensor: 1.15 to 1.30
measured (docs/experiments)."""


# Dense peaks in TFLOP/s (fp32 without tensor cores, torch's default), GB/s, GiB, and GB/s per GPU
# of a link between machines as they are usually built (400 Gbit/s for the large cards, 25 Gbit/s
# Ethernet for the small ones).
DEVICES = {
    "h200": _card("NVIDIA H200", bf16=989, tf32=67, bandwidth=4800, memory=140, link=50),
    "h100": _card("NVIDIA H100 SXM", bf16=989, tf32=67, bandwidth=3350, memory=79, link=50),
    "a100": _card("NVIDIA A100 80GB", bf16=312, tf32=19.5, bandwidth=2039, memory=79, link=25),
    "l40s": _card("NVIDIA L40S", bf16=362, tf32=91.6, bandwidth=864, memory=44, link=12.5),
    "rtx4090": _card("NVIDIA RTX 4090", bf16=165, tf32=82.6, bandwidth=1008, memory=23.5, link=3.1),
    "rtx3090": _card("NVIDIA RTX 3090", bf16=71, tf32=35.6, bandwidth=936, memory=23.5, link=3.1),
}
