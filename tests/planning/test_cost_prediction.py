"""Memory and seconds of a step with known numbers."""

from dataclasses import replace

import torch

from headwise.planning.cost_prediction import (
    COMPILED_KEPT,
    GAP_SECONDS,
    LIBRARY_BYTES,
    OPTIMIZER_BYTES,
    UNRECORDED_CALLS,
    Execution,
    MemoryParts,
    StepSeconds,
    Weights,
    extrapolate,
    predict_memory,
    predict_seconds,
)
from headwise.planning.hardware import DEVICES, Hardware
from headwise.planning.machine_timing import Timings
from headwise.planning.step_tracing import Operation, StepTrace

MACHINE = Hardware(
    "made up",
    "cuda",
    bf16_flops=100.0,
    fp32_flops=10.0,
    bandwidth=1000.0,
    memory=1e6,
    launch_seconds=0.5,
    attention_flops=20.0,
)
PRODUCT = Operation(torch.ops.aten.mm.default, (1,), (), "product", flops=700, nbytes=300)
COPY = Operation(torch.ops.aten.add.Tensor, (2,), (), "other", flops=0, nbytes=500)
TRACE = StepTrace(
    {PRODUCT: 3, COPY: 2},
    activations=5000,
    workspace=700,
    gradients_at_peak=40,
    compiled_traffic=400,
    num_regions=3,
)
WEIGHTS = Weights(nbytes=1200, num_learning=300)


def test_each_operation_takes_the_longer_of_its_two_times() -> None:
    slow_memory = predict_seconds(TRACE, WEIGHTS, MACHINE, Execution(bf16=True))
    assert slow_memory.products == 3 * 7.0
    assert slow_memory.other == 2 * 0.5
    assert slow_memory.optimizer == OPTIMIZER_BYTES * 300 / 1000
    assert slow_memory.launches == 0
    assert predict_seconds(TRACE, WEIGHTS, MACHINE, Execution(bf16=False)).products == 3 * 70.0
    measured = predict_seconds(
        TRACE, WEIGHTS, MACHINE, Execution(bf16=True), timings=Timings.of({PRODUCT: 2.0})
    )
    assert (measured.products, measured.other) == (6.0, 1.0)


def test_launches_matter_where_kernels_are_short() -> None:
    quick = Hardware("quick", "cuda", 1e9, 1e9, 1e9, 1e6, launch_seconds=0.5, attention_flops=1e9)
    plain = predict_seconds(TRACE, WEIGHTS, quick, Execution(bf16=True))
    assert abs(plain.launches + plain.products + plain.attention + plain.other - 5 * 0.5) < 1e-9
    assert (
        predict_seconds(TRACE, WEIGHTS, replace(quick, kind="cpu"), Execution(bf16=True)).launches
        == 5 * 0.5
    )
    graph = predict_seconds(
        TRACE, WEIGHTS, quick, Execution(bf16=True, compiled=True, cuda_graphs=True)
    )
    assert graph.launches == 6 * GAP_SECONDS
    assert graph.other == 400 / 1e9


def test_what_was_not_timed_goes_by_its_kind() -> None:
    twice = replace(PRODUCT, arguments=(3,), flops=1400)
    other = replace(PRODUCT, function=torch.ops.aten.bmm.default)
    timings = Timings.of({PRODUCT: 7.0, COPY: 1.0})
    assert (timings.seconds(PRODUCT), timings.seconds(twice), timings.seconds(other)) == (
        7.0,
        14.0,
        None,
    )


def test_parts_of_memory() -> None:
    memory = predict_memory(TRACE, WEIGHTS, Execution(bf16=True))
    assert (memory.weights, memory.optimizer, memory.gradients) == (1200, 2400, 40)
    assert (memory.activations, memory.workspace, memory.averaging) == (5000, 700, 0)
    assert memory.total == 1200 + 2400 + 40 + 5000 + 700
    compiled = predict_memory(
        TRACE, Weights(1200, 300, num_copies=1), Execution(True, compiled=True), accumulation=2
    )
    assert (compiled.gradients, compiled.averaging) == (1200, 1200), "gradients outlive a batch"
    assert compiled.activations == int(5000 * COMPILED_KEPT)
    assert predict_memory(TRACE, WEIGHTS, Execution(True), heap=1.5).activations == 7500
    recorded = predict_memory(TRACE, WEIGHTS, Execution(True, cuda_graphs=True))
    assert (recorded.gradients, recorded.workspace) == (1200, 700 + LIBRARY_BYTES)
    nothing_kept = StepTrace(activations=10, workspace=5)
    assert predict_memory(nothing_kept, WEIGHTS, Execution(True)).gradients == 1200 - 15, (
        "the end of backward is higher"
    )


def test_the_measured_points_of_an_h200_are_met() -> None:
    """The trace of the base size is not repeated here; the figures of
    docs/experiments/planning-and-data.md bound the constants.
    """
    h200 = DEVICES["h200"]
    assert 570e12 < h200.bf16_flops < 640e12
    assert 4.2e12 < h200.bandwidth < 4.35e12
    assert all(device.link > 0 and device.memory > 2**34 for device in DEVICES.values())


def test_attention_has_a_speed_of_its_own_and_no_product_is_shorter_than_the_shortest() -> None:
    attention = Operation(
        torch.ops.aten._scaled_dot_product_flash_attention.default, (1,), (), "attention", 100, 7
    )
    trace = StepTrace({attention: 2, PRODUCT: 3}, num_regions=5)
    for narrow in (MACHINE, replace(MACHINE, bf16_flops=1.0)):
        assert (
            predict_seconds(trace, WEIGHTS, narrow, Execution(bf16=True)).attention
            == 2 * 100 / 20.0
        )
    slow_start = replace(MACHINE, shortest_product=11.0)
    assert predict_seconds(trace, WEIGHTS, slow_start, Execution(bf16=True)).products == 3 * 11.0


def test_compiled_code_that_is_not_recorded_launches_more_than_its_kernels() -> None:
    quick = replace(MACHINE, bf16_flops=1e9, bandwidth=1e9, attention_flops=1e9)
    loose = predict_seconds(
        TRACE, WEIGHTS, quick, Execution(bf16=True, compiled=True, num_devices=2)
    )
    assert abs(loose.total - loose.optimizer - round(UNRECORDED_CALLS * 3) * 0.5) < 1e-9


def test_gradients_stay_where_several_devices_add_them_up() -> None:
    assert predict_memory(TRACE, WEIGHTS, Execution(True, num_devices=2)).gradients == 1200


def test_a_line_through_two_points() -> None:
    small, large = (MemoryParts(3, 5 * n, 7, 0, 11 * n, 13) for n in (1, 2))
    assert extrapolate(small, large, 9.0) == MemoryParts(3, 55, 7, 0, 121, 13)
    assert extrapolate(StepSeconds(1, 2, 3, 4, 5), StepSeconds(2, 2, 2, 4, 6), 3.0) == StepSeconds(
        5, 2, 0, 4, 9
    )
