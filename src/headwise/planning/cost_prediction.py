"""From a traced step and a machine to memory and seconds: a roofline, operation by operation.

    memory    weights + gradients + Adam's moments + average + what forward leaves for backward + work space
    seconds   Σ over operations max(flops / product speed, bytes / bandwidth), or launches if those take longer
              + optimiser: 44 bytes a weight (norm 4, scaling 8, Adam reads 16 and writes 12, clearing 4)

On the machine at hand each operation's own time is measured instead (`calibration.py`). Compiled
code moves fewer bytes between products and launches fewer kernels; captured as a CUDA graph it
launches none. Tested against: cases worked by hand; real steps in benchmarks/bench_plan.py.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

from headwise.planning.hardware import Hardware
from headwise.planning.machine_timing import Timings
from headwise.planning.step_tracing import Operation, StepTrace

OPTIMIZER_BYTES = 44
BYTES_FP32 = 4
COMPILED_KEPT = 0.9
"""Of what plain code keeps for backward: compiled code makes some of it again (small, fp32 and
bf16, on a CPU)."""
GAP_SECONDS = 3.5e-6
"""For each kernel of a replayed CUDA graph, beyond its work: one drains while the next fills (H200,
four sizes)."""
UNRECORDED_CALLS = 6.5
"""Launches that each product of compiled code stands for if they are not recorded: its own, that of
what was fused, the sums of gradients, the optimiser and the bookkeeping between them (H200: tiny at
8,192 tokens 22 ms, base at 25,600 30.8 ms)."""
LIBRARY_BYTES = 64 << 20
"""What cuBLAS takes for itself on two streams: one that runs and one that is recorded."""


@dataclass(frozen=True)
class Execution:
    """How a step is run: what the recipe and the machine decided."""

    bf16: bool
    compiled: bool = False
    cuda_graphs: bool = False
    num_devices: int = 1


@dataclass(frozen=True)
class Weights:
    """Numbers that stay: of all weights, of those that learn, and copies kept for averaging."""

    nbytes: int
    num_learning: int
    num_copies: int = 0


@dataclass(frozen=True)
class MemoryParts:
    """Bytes, each at the highest point of a step."""

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
    """Where the time of one update goes; kernels of all batches of an update together."""

    products: float
    attention: float
    other: float
    optimizer: float
    launches: float
    """What the launches take beyond the kernels they wait for."""

    @property
    def total(self) -> float:
        return sum(vars(self).values())


Parts = TypeVar("Parts", MemoryParts, StepSeconds)


def draw_out(small: Parts, large: Parts, steps: float) -> Parts:
    """On the straight line through both: what `large` and `steps` times their difference add up to."""
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
    """`heap`: what the allocator holds for each byte that comes and goes."""
    gradients = BYTES_FP32 * weights.num_learning
    # They outlive the update if more batches follow, or if a graph or other devices write to them;
    # else they grow while activations shrink.
    stay = accumulation > 1 or execution.cuda_graphs or execution.num_devices > 1
    workspace = trace.compiled_workspace if execution.compiled else trace.workspace
    activations = int(trace.activations * (COMPILED_KEPT if execution.compiled else 1))
    at_peak = gradients if stay else trace.gradients_at_peak
    if not stay:  # at the end of backward nothing but gradients is left: the other candidate for the highest point
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
    """Of forward and backward on one batch and one update."""
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
    """A device that is sent kernels one by one waits if they are shorter than the sending; a CPU
    sends them to itself.
    """
    if execution.cuda_graphs:
        # Compiled: one product or attention and, before it, what was fused.
        return (2 * trace.num_regions if execution.compiled else trace.calls()) * GAP_SECONDS
    count = trace.calls()
    if execution.compiled:
        count = round((2 if hardware.kind == "cpu" else UNRECORDED_CALLS) * trace.num_regions)
    if hardware.kind == "cpu":
        return count * hardware.launch_seconds
    return max(0.0, count * hardware.launch_seconds - kernels)
