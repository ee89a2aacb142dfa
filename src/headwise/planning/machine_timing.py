"""Measures this machine in a few seconds: times each distinct operation of a training step alone.

A step of a Transformer has about a hundred distinct operations, most of them repeated in every
layer. Timed once each, their sum is the time of the step, with the caches, libraries and thread
counts of this machine; a table of correction factors would be wrong on the next processor. Short
operations are repeated until they can be measured. A large batch is timed at the shapes of a
smaller one and extrapolated by flops and bytes.

Tested against: real training steps (benchmarks/bench_plan.py).
"""

import math
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from headwise.planning.hardware import GLIBC_HEAP, Hardware
from headwise.planning.step_tracing import Form, Operation, StepTrace

SECONDS_PER_CALL = 0.02
_NUM_PRODUCTS = 12
_LARGE = {"cuda": 4096, "cpu": 512}
"""Rows and columns of a matrix product that reaches the best speed of the device."""
ATTENTION_OF_LARGE = 0.10
"""Share of the speed of a large product that fused attention reaches on rows of 128 tokens (H200:
78 of 769 TFLOP/s)."""
_NUM_PASSES = 2
_RECORDED_CALLS = 20
_LAUNCH_OF_ADDITION = 4.0
"""A call in a model costs about four plain additions: autograd records it and runs it backwards,
with views and modules around it."""
UNKNOWN_LINK = 1.25e9
"""Bytes a second to other machines if not given: 10 Gbit/s Ethernet."""
_COPY_BYTES = {"cpu": 1 << 27, "cuda": 1 << 30}


@dataclass(frozen=True)
class Timings:
    """Seconds of the timed operations, and of others of their kind: by flops or by bytes."""

    exact: Mapping[Operation, float]
    pace: Mapping[str, float]
    """Seconds per unit of work, for each function."""

    @staticmethod
    def of(exact: Mapping[Operation, float]) -> "Timings":
        seconds, work = defaultdict[str, float](float), defaultdict[str, float](float)
        for operation, taken in exact.items():
            seconds[str(operation.function)] += taken
            work[str(operation.function)] += operation.work
        return Timings(exact, {name: seconds[name] / max(1, work[name]) for name in seconds})

    def seconds(self, operation: Operation) -> float | None:
        """None for a function that was never timed."""
        if operation in self.exact:
            return self.exact[operation]
        pace = self.pace.get(str(operation.function))
        return None if pace is None else pace * operation.work


def time_operations(
    operations: Iterable[Operation], device: torch.device, *, least: float = SECONDS_PER_CALL
) -> Timings:
    """Time each operation alone; one that needs the context of the real step is left out."""
    listed, found = list(operations), dict[Operation, float]()
    # What else happens on the machine comes in bursts: a second look is seldom disturbed too.
    for _ in range(_NUM_PASSES):
        for operation in listed:
            seconds = _time_operation(operation, device, least)
            if seconds is not None:
                found[operation] = min(seconds, found.get(operation, seconds))
    return Timings.of(found)


def _time_operation(
    operation: Operation, device: torch.device, least: float = SECONDS_PER_CALL
) -> float | None:
    generator = torch.Generator(device).manual_seed(1)
    try:
        arguments = _with_content(operation.arguments, device, generator)
        options = {
            name: _with_content(value, device, generator) for name, value in operation.options
        }
        run = partial(operation.function, *arguments, **options)
        return (
            measure_kernel(run)
            if device.type == "cuda"
            else measure_seconds(run, device, least=least)
        )
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return None  # it needs something of the real step, such as a generator or a count


def measure_seconds(
    run: Callable[[], object], device: torch.device, *, least: float = SECONDS_PER_CALL
) -> float:
    """The minimum of a few repetitions; short calls are repeated within one measurement.

    Results are kept until the clock stops, because a real step also writes to memory that was not
    just used.
    """
    run()
    _synchronize(device)
    repeats, found = 1, list[float]()
    while len(found) < 3:
        results = []
        began = time.perf_counter()
        for _ in range(repeats):
            results.append(run())
        _synchronize(device)
        elapsed = time.perf_counter() - began
        del results
        found.append(elapsed / repeats)
        if elapsed < least / 10:
            repeats, found = max(2 * repeats, int(repeats * least / 10 / max(elapsed, 1e-7))), []
        elif sum(found) * repeats > least:
            break
    return min(found)


def measure_machine(
    trace: StepTrace, device: torch.device, *, bf16: bool, memory: int | None
) -> Hardware:
    """Speed of matrix products at the shapes of this step, copy speed, and time of small calls."""
    products = [operation for operation in trace.operations if operation.kind == "product"]
    largest = sorted(products, key=lambda operation: operation.flops)[-_NUM_PRODUCTS:]
    seconds = {operation: _time_operation(operation, device) or 0.0 for operation in largest}
    work = sum(trace.operations[operation] * operation.flops for operation in largest)
    speed = work / max(
        1e-12, sum(trace.operations[operation] * seconds[operation] for operation in largest)
    )
    small = torch.ones(8, device=device, requires_grad=True)
    name = (
        torch.cuda.get_device_name(device)
        if device.type == "cuda"
        else platform.processor() or platform.machine()
    )
    return Hardware(
        name=name,
        kind=device.type,
        bf16_flops=speed if bf16 else 0.0,
        fp32_flops=0.0 if bf16 else speed,
        bandwidth=measure_bandwidth(device),
        memory=math.inf if memory is None else float(memory),
        launch_seconds=_LAUNCH_OF_ADDITION * measure_seconds(lambda: small + 1.0, device),
        attention_flops=ATTENTION_OF_LARGE * measure_large_product(device, bf16=bf16),
        heap=1.0 if device.type == "cuda" else GLIBC_HEAP,
        link=UNKNOWN_LINK,
        measured=True,
    )


def measure_kernel(run: Callable[[], object]) -> float:
    """Time on a GPU without the launch: the kernel is recorded many times and replayed."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()  # libraries are loaded and kernels chosen before anything is recorded
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(_RECORDED_CALLS):
            run()
    return measure_seconds(graph.replay, torch.device("cuda")) / _RECORDED_CALLS


def measure_large_product(device: torch.device, *, bf16: bool) -> float:
    """FLOP/s of a product that is large enough for the best speed."""
    size = _LARGE[device.type]
    factor = torch.ones(size, size, device=device, dtype=torch.bfloat16 if bf16 else torch.float32)
    run = partial(torch.mm, factor, factor)
    return (
        2.0
        * size**3
        / (measure_kernel(run) if device.type == "cuda" else measure_seconds(run, device))
    )


def measure_bandwidth(device: torch.device) -> float:
    """Bytes read plus bytes written a second, by copying more than the caches hold."""
    source = torch.ones(_COPY_BYTES[device.type] // 4, device=device)
    target = torch.empty_like(source)
    return 2 * source.nbytes / measure_seconds(lambda: target.copy_(source), device)


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _with_content(value: Any, device: torch.device, generator: torch.Generator) -> Any:
    if isinstance(value, Form):
        return _fill(value, device, generator)
    if isinstance(value, torch.device):
        return device
    if isinstance(value, tuple):
        return [_with_content(item, device, generator) for item in value]
    return value


def _fill(form: Form, device: torch.device, generator: torch.Generator) -> Tensor:
    tensor = torch.empty_strided(form.shape, form.stride, dtype=form.dtype, device=device)
    if form.dtype.is_floating_point:
        if 0 in form.stride:  # an expanded tensor cannot be filled in place
            return torch.ones((), dtype=form.dtype, device=device).expand(form.shape)
        return tensor.normal_(generator=generator) if form.shape else tensor.fill_(0.5)
    if 0 in form.stride:
        return torch.ones((), dtype=form.dtype, device=device).expand(form.shape)
    return tensor.fill_(1)
