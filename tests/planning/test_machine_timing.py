import time

import torch

from headwise.planning.machine_timing import measure_machine, measure_seconds, time_operations
from headwise.planning.step_tracing import trace_step

from .models import made_step

CPU = torch.device("cpu")


def test_the_clock_sees_what_is_slept() -> None:
    assert 0.01 <= measure_seconds(lambda: time.sleep(0.01), CPU) < 0.1


def test_every_operation_of_a_step_can_be_timed_alone() -> None:
    for bf16 in (False, True):
        trace = trace_step(made_step().step(2, bf16=bf16))
        timings = time_operations(trace.operations, CPU, least=1e-5)
        assert [
            str(operation.function)
            for operation in trace.operations
            if operation not in timings.exact
        ] == []
        assert all(seconds > 0 for seconds in timings.exact.values())


def test_a_machine_has_numbers() -> None:
    machine = measure_machine(
        trace_step(made_step().step(2, bf16=False)), CPU, bf16=False, memory=None
    )
    assert machine.fp32_flops > 1e6
    assert machine.bandwidth > 1e8
    assert 1e-8 < machine.launch_seconds < 1e-2
    assert machine.memory == float("inf")
