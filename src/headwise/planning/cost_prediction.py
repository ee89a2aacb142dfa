"""Predicts memory and time of a training step from its trace and the machine: a roofline model.

    memory    weights + gradients + Adam's moments + average + activations + work space
    seconds   Σ over operations max(flops / speed, bytes / bandwidth), or the launches if longer
              + optimiser: 44 bytes a weight (norm 4, scaling 8, Adam reads 16 and writes 12,
                clearing 4)

On this machine the time of each operation is measured instead (`machine_timing.py`). Compiled code
moves fewer bytes between products and launches fewer kernels; recorded as a CUDA graph it launches
none. Tested against: hand-computed cases; real steps in benchmarks/bench_plan.py.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

from headwise.planning.hardware import Hardware
from headwise.planning.machine_timing import Timings
from headwise.planning.step_tracing import Operation, StepTrace

OPTIMIZER_BYTES = 44
BYTES_FP32 = 4
COMPILED_KEPT = 0.9
"""Share of the activations that compiled code keeps; it recomputes the others (small model, CPU).
"""
GAP_SECONDS = 3.5e-6
"""For each kernel of a replayed CUDA graph, beyond its work (H200, four sizes)."""
UNRECORDED_CALLS = 6.5
"""Launches that each product of compiled code stands for if they are not recorded: its own, that of
what was fused, the sums of gradients, the optimiser and the bookkeeping between them (H200: tiny at
8,192 tokens 22 ms, base at 25,600 30.8 ms)."""
LIBRARY_BYTES = 64 << 20
"""Memory of cuBLAS on two streams: one that runs and one that is recorded."""


@dataclass(frozen=True)
class Execution:
    """How a step is executed: decided by recipe and machine."""

    bf16: bool
    compiled: bool = False
    cuda_graphs: bool = False
    num_devices: int = 1


@dataclass(frozen=True)
class Weights:
    """Number of all weights, of trainable ones, and of copies kept for averaging."""

    nbytes: int
    num_learning: int
    num_copies: int = 0


@dataclass(frozen=True)
class MemoryParts:
    """Bytes, each at the peak of a step."""

    weights: int
    gradients: int
    optimizer: int
    averaging: int
    activations: int
    workspace: int

    @property
    def total(self) -> int:
        return sum(vars(self).values())

    @property
    def fixed(self) -> int:
        """What does not depend on the batch."""
        return self.weights + self.optimizer + self.averaging


@dataclass(frozen=True)
class StepSeconds:
    """Where the time of one update goes, over all batches of the update."""

    products: float
    attention: float
    other: float
    optimizer: float
    launches: float
    """Time of launches beyond the kernels."""

    @property
    def total(self) -> float:
        return sum(vars(self).values())


Parts = TypeVar("Parts", MemoryParts, StepSeconds)


def extrapolate(small: Parts, large: Parts, steps: float) -> Parts:
    """Extrapolate linearly: `large` plus `steps` times the difference."""
    slopes = {name: value - getattr(small, name) for name, value in vars(large).items()}
    return replace(
        large,
        **{
            name: type(value)(max(0, value + steps * slopes[name]))
            for name, value in vars(large).items()
        },
    )


def predict_memory(
    trace: StepTrace,
    weights: Weights,
    execution: Execution,
    *,
    accumulation: int = 1,
    heap: float = 1.0,
) -> MemoryParts:
    """`heap`: bytes that the allocator holds for each temporary byte."""
    gradients = BYTES_FP32 * weights.num_learning
    # They outlive the update if more batches follow, or if a graph or other devices write to them;
    # else they grow while activations shrink.
    stay = accumulation > 1 or execution.cuda_graphs or execution.num_devices > 1
    workspace = trace.compiled_workspace if execution.compiled else trace.workspace
    activations = int(trace.activations * (COMPILED_KEPT if execution.compiled else 1))
    at_peak = gradients if stay else trace.gradients_at_peak
    # At the end of the backward pass only gradients are left: the other possible peak.
    if not stay:
        at_peak = max(at_peak, gradients - activations - workspace)
    return MemoryParts(
        weights=weights.nbytes,
        gradients=int(heap * at_peak),
        optimizer=2 * gradients,
        averaging=weights.num_copies * weights.nbytes,
        activations=int(heap * activations),
        workspace=int(heap * workspace) + (LIBRARY_BYTES if execution.cuda_graphs else 0),
    )


def predict_seconds(
    trace: StepTrace,
    weights: Weights,
    hardware: Hardware,
    execution: Execution,
    *,
    timings: Timings | None = None,
) -> StepSeconds:
    """Time of forward and backward pass on one batch, and of one update."""
    sums = {"product": 0.0, "attention": 0.0, "other": 0.0}
    for operation, count in trace.operations.items():
        seconds = None if timings is None else timings.seconds(operation)
        if operation.kind == "other" and execution.compiled:
            continue
        sums[operation.kind] += count * (
            _roofline(operation, hardware, execution) if seconds is None else seconds
        )
    if execution.compiled:
        sums["other"] = trace.compiled_traffic / hardware.bandwidth
    kernels = sum(sums.values())
    optimizer = OPTIMIZER_BYTES * weights.num_learning / hardware.bandwidth
    return StepSeconds(
        products=sums["product"],
        attention=sums["attention"],
        other=sums["other"],
        optimizer=optimizer,
        launches=_waiting_seconds(trace, hardware, execution, kernels),
    )


def _roofline(operation: Operation, hardware: Hardware, execution: Execution) -> float:
    moving = operation.nbytes / hardware.bandwidth
    if operation.kind == "attention":
        return max(operation.flops / hardware.attention_flops, moving)
    least = hardware.shortest_product if operation.kind == "product" else 0.0
    return max(operation.flops / hardware.product_flops(bf16=execution.bf16), moving, least)


def _waiting_seconds(
    trace: StepTrace, hardware: Hardware, execution: Execution, kernels: float
) -> float:
    """A device waits if kernels are shorter than their launches; a CPU launches for itself."""
    if execution.cuda_graphs:
        # Compiled: one product or attention and, before it, what was fused.
        return (2 * trace.num_regions if execution.compiled else trace.calls()) * GAP_SECONDS
    count = trace.calls()
    if execution.compiled:
        count = round((2 if hardware.kind == "cpu" else UNRECORDED_CALLS) * trace.num_regions)
    if hardware.kind == "cpu":
        return count * hardware.launch_seconds
    return max(0.0, count * hardware.launch_seconds - kernels)
