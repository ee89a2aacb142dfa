"""Measures one attention kernel at one length: time, memory, and distance from exact attention.

    time       forward, and forward + backward: the median of several calls after warming up, with
               the GPU synchronised and without compilation
    memory     the peak of forward + backward above the memory in use before (with the inputs,
               without the weights)
    distance   ‖out − exact‖ / ‖exact‖ over all heads and positions; exact is softmax attention of
               the same q, k, v in fp32, or what the kernel declares to approximate

The input is one fixed draw of normal numbers. Time and memory do not depend on it. For the distance
it is the hardest case: no keys are similar, so softmax spreads its weight over the whole length n,
and every kernel that leaves keys out must be far off (a window of w keys by about √(n/w)). The
distance tells how well a kernel approximates softmax, not how well a model trained with it works;
`headwise compare RECIPE` measures that.

Tested on a CPU with every kernel; the distance of fused attention is rounding error.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from headwise.attention.capabilities import AttentionKind, attend_exactly, keys_are_queries
from headwise.attention.choices import build_attention
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.masks import Mask, causal, everything
from headwise.attention.multi_head import Kernel
from headwise.initialization import initialize
from headwise.planning.peak_memory import MemoryMeter
from headwise.randomness import torch_generator

WARM_UP = 3
MIN_RUNS, MAX_RUNS = 3, 30
SECONDS_PER_CASE = 1.0


@dataclass(frozen=True)
class Conditions:
    """What is the same for every point; other conditions make another comparison."""

    device: Literal["cpu", "cuda"]
    precision: Literal["fp32", "bf16"]
    heads: int = 8
    head_dim: int = 64
    batch: int = 1
    causal: bool = False
    compiled: bool = False

    @property
    def dtype(self) -> torch.dtype:
        return torch.bfloat16 if self.precision == "bf16" else torch.float32


@dataclass(frozen=True)
class Point:
    """The measurements of one kernel at one length, or why there are none."""

    kernel: str
    length: int
    forward_seconds: float | None = None
    both_seconds: float | None = None
    memory_mib: float | None = None
    distance: float | None = None
    skipped: str | None = None
    remark: str | None = None
    operations: float | None = None
    """Of a forward pass, by the kernel's own formula (`AttentionKind.cost`)."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure_point(name: str, settings: AttentionKind, length: int, conditions: Conditions) -> Point:
    """Build the kernel as a model would and measure it on the fixed input."""
    device = torch.device(conditions.device)
    # Drop the code compiled for the last length, so that this one is not counted as a
    # recompilation.
    torch.compiler.reset()
    kernel = _build_kernel(settings, conditions)
    shares = keys_are_queries(kernel)
    mask = causal() if conditions.causal else everything()
    mask = kernel.prepare(mask, length, length, device)

    def attend(q: Tensor, k: Tensor, v: Tensor, *, training: bool) -> Tensor:
        return kernel(q, q if shares else k, v, mask, training=training)

    # The reference is not compiled: the compiler would recognise the pattern and replace it with a
    # fused kernel.
    compiles = conditions.compiled and not settings.is_reference
    compute: Callable[..., Tensor] = torch.compile(attend, dynamic=False) if compiles else attend
    _start_products(device)
    meter = MemoryMeter(device)
    meter.start_building()
    q, k, v = (draw(part, length, conditions).requires_grad_() for part in ("q", "k", "v"))
    upstream = draw("upstream", length, conditions)

    def forward() -> Tensor:
        with torch.no_grad():
            return compute(q, k, v, training=False)

    def both() -> None:
        q.grad = k.grad = v.grad = None
        compute(q, k, v, training=True).backward(upstream)

    forward_seconds, both_seconds = median_seconds(forward, device), median_seconds(both, device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    memory = meter.peak_of(both)
    return Point(
        name,
        length,
        forward_seconds=forward_seconds,
        both_seconds=both_seconds,
        # A process may release more memory than it took.
        memory_mib=None if memory is None else max(0.0, memory),
        distance=distance_from_exact(forward(), (q, k, v), kernel, is_causal=conditions.causal),
        operations=float(
            conditions.batch
            * settings.count_operations(
                length, num_heads=conditions.heads, head_dim=conditions.head_dim
            )
        ),
    )


def _build_kernel(settings: AttentionKind, conditions: Conditions) -> Kernel:
    """The kernel of a layer with initial weights, on the device of the measurement."""
    layer = build_attention(
        settings,
        dim=conditions.heads * conditions.head_dim,
        num_heads=conditions.heads,
        dropout_rate=0.0,
        role="decoder" if conditions.causal else "encoder",
    )
    initialize(layer, torch_generator("attention comparison", "weights"))
    kernel = layer.kernel
    if isinstance(kernel, nn.Module):
        kernel.to(device=torch.device(conditions.device))
    return kernel


def _start_products(device: torch.device) -> None:
    """Run one product first: cuBLAS allocates 32 MiB of workspace for each thread, forward and
    backward, which is not memory of the kernel.
    """
    if device.type == "cuda":
        tiny = torch.ones(8, 8, device=device, requires_grad=True)
        (tiny @ tiny).sum().backward()


def draw(part: str, length: int, conditions: Conditions) -> Tensor:
    """Normal numbers, the same for every kernel, drawn on the CPU so that all devices get the same
    ones.
    """
    generator = torch_generator("attention comparison", part, length)
    shape = (conditions.batch, conditions.heads, length, conditions.head_dim)
    return torch.randn(shape, generator=generator).to(conditions.device, conditions.dtype)


@torch.no_grad()
def distance_from_exact(
    out: Tensor, given: tuple[Tensor, Tensor, Tensor], kernel: Kernel, *, is_causal: bool
) -> float:
    """The relative distance in fp32, head by head to save memory; `given` are q, k and v."""
    mask: Mask = causal() if is_causal else everything()
    apart = whole = 0.0
    for head in range(out.shape[1]):
        one = slice(head, head + 1)
        q, k, v = (x[:, one].float() for x in given)
        exact = attend_exactly(kernel, q, v, is_causal=is_causal)
        if exact is None:
            exact = FusedAttention(0.0)(q, k, v, mask)
        apart += float((out[:, one].float() - exact).double().square().sum())
        whole += float(exact.double().square().sum())
    return (apart / whole) ** 0.5


def median_seconds(run: Callable[[], object], device: torch.device) -> float:
    """The median of as many calls as fit into a second, at least three, after warming up."""
    for _ in range(WARM_UP):
        last = _seconds(run, device)
        if last > SECONDS_PER_CASE:
            break  # calls this long are warmed up by one call
    return statistics.median(_seconds(run, device) for _ in range(_num_runs(last)))


def _num_runs(seconds: float) -> int:
    return max(MIN_RUNS, min(MAX_RUNS, int(SECONDS_PER_CASE / max(seconds, 1e-9))))


def repeated_seconds(seconds: float) -> float:
    """The time that `median_seconds` takes for calls of this length."""
    return ((1 if seconds > SECONDS_PER_CASE else WARM_UP) + _num_runs(seconds)) * seconds


def _seconds(run: Callable[[], object], device: torch.device) -> float:
    if device.type == "cuda":
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        run()
        end.record()
        torch.cuda.synchronize(device)
        return start.elapsed_time(end) / 1000
    began = time.perf_counter()
    run()
    return time.perf_counter() - began
