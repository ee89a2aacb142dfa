"""Plans of recipes: what they add up to, on paper and here."""

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial

import pytest

from headwise.errors import UsageError
from headwise.language import use_language
from headwise.planning.cost_prediction import Execution
from headwise.planning.machine_timing import Timings, time_operations
from headwise.planning.plan import Plan
from headwise.planning.step_tracing import Operation
from headwise.tasks import planner as planning
from headwise.tasks.planner import Planner, plan_recipe, plan_step
from headwise.training import losses
from tests.planning.models import made_recipe, made_step


@cache
def plan_on_paper(gpus: int = 1, **training: object) -> Plan:
    """The plan of one training, made once: its step is watched in half a second."""
    plan = plan_recipe(made_recipe(**training), device="h200", gpus=gpus)
    assert isinstance(plan, Plan)
    return plan


def test_a_plan_on_paper_adds_up() -> None:
    plan = plan_recipe(
        made_recipe(steps=1000, compile="auto"), device="h200", gpus=3, memory=1.5, bandwidth=20
    )
    parts = plan.as_dict()
    assert parts["memory"]["total"] == sum(
        value for name, value in parts["memory"].items() if name != "total"
    )
    assert plan.execution.compiled
    assert not plan.execution.cuda_graphs, "an update that waits for other devices is not recorded"
    assert plan.hardware.memory == 1.5 * 2**30
    assert plan.hardware.link == 20e9
    assert plan.run.tokens_per_step == pytest.approx(0.98 * 5 * 24)
    assert plan.together is not None
    assert plan.duration == pytest.approx(1000 * plan.together.step_seconds)
    assert plan.together.traffic == int(4 / 3 * 4 * plan.run.parameters)
    titles = [title for title, _, _ in plan.tables()]
    assert titles[-1] == "3 devices, 20 GB/s each"
    use_language("zh")
    assert plan.tables()[0][0] == "运行"


def test_a_plan_of_this_machine_measures_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "time_operations", partial(time_operations, least=1e-4))
    plan = plan_step(made_step(), device="cpu")
    assert plan.hardware.measured
    assert plan.tokens_per_second > 0
    assert plan.fits
    assert len(plan.tables()) == 3
    (remark,) = plan.remarks()
    assert "--device h200 does: h200, h100, a100" in remark
    assert "attention" in str(plan.tables()[2])


def test_a_large_batch_is_drawn_out_from_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    def take_time(operations: Mapping[Operation, int], device: object) -> Timings:
        return Timings.of({operation: 1e-9 * operation.work for operation in operations})

    monkeypatch.setattr(planning, "time_operations", take_time)
    step = made_step(batch_tokens=40 * 24)
    directly = plan_step(step, device="cpu")
    monkeypatch.setattr(planning, "CALIBRATION_TOKENS", 8 * 24)
    drawn_out = plan_step(step, device="cpu")
    for part in ("products", "attention", "other"):
        assert getattr(drawn_out.seconds, part) == pytest.approx(
            getattr(directly.seconds, part), rel=1e-6
        )


def test_accumulation_and_averages_are_counted() -> None:
    one = plan_on_paper()
    two = plan_recipe(made_recipe(accumulation=2, ema=0.9), device="h200")
    assert two.memory.averaging == two.memory.weights
    assert two.run.tokens_per_step == 2 * one.run.tokens_per_step
    assert two.update.compute_seconds < 2 * one.update.compute_seconds


def test_execution_is_what_training_would_do(caplog: pytest.LogCaptureFixture) -> None:
    sharded = {"parallel": {"kind": "sharded"}}
    found = {
        (gpus, kind): plan_recipe(
            made_recipe(steps=1000, compile="auto", **extra), device="h200", gpus=gpus
        ).execution
        for gpus in (1, 2)
        for kind, extra in (("replicated", {}), ("sharded", sharded))
    }
    compiled = {
        key: (execution.compiled, execution.cuda_graphs) for key, execution in found.items()
    }
    assert compiled == {
        (1, "replicated"): (True, True),
        (1, "sharded"): (True, True),
        (2, "replicated"): (True, False),
        (2, "sharded"): (False, False),
    }
    with pytest.raises(UsageError, match="an update that sums over processes is not recorded"):
        plan_recipe(made_recipe(cuda_graphs="on"), device="h200", gpus=2)


def test_compiled_gradients_are_sent_when_nothing_hides_them() -> None:
    plans = [
        plan_recipe(made_recipe(compile=how, steps=1000), device="h200", gpus=2)
        for how in ("on", "off")
    ]
    for plan, hidden in zip(plans, (0.0, 1.0), strict=True):
        tail = plan.update.traffic / plan.hardware.link
        assert plan.update.exposed_seconds == pytest.approx(tail), "one bucket is never hidden"
        assert plan.execution.compiled == (hidden == 0.0)


@pytest.mark.parametrize("device", ["cpu", pytest.param("h200", marks=pytest.mark.prove)])
def test_a_hopeless_batch_is_planned_at_once_and_on_the_line_of_smaller_ones(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def memory_of(batch_tokens: int) -> int:
        planner = Planner(
            made_step(batch_tokens=batch_tokens), Execution(bf16=False), cuda=device == "h200"
        )
        parts = planner.memory(1.0)
        return parts.activations + parts.workspace

    # Few logits a chunk, so that a small model has many chunks.
    monkeypatch.setattr(losses, "CHUNK_LOGITS_CPU", 1 << 15)
    monkeypatch.setattr(losses, "CHUNK_LOGITS_CUDA", 1 << 15)
    watched = memory_of(1200 * 24)
    monkeypatch.setattr(planning, "MOST_CHUNKS", 8)
    assert memory_of(1200 * 24) == pytest.approx(watched, rel=0.04)
    began = time.process_time()  # others may use the machine as well
    hopeless = memory_of(100_000_000)
    assert time.process_time() - began < 5
    assert hopeless == pytest.approx(watched * 100_000_000 / (1200 * 24), rel=0.04)


def test_several_cpus_are_said_to_be_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "time_operations", partial(time_operations, least=1e-4))
    plan = plan_step(made_step(), device="cpu", gpus=3)
    assert "3 machines with a CPU like this one's" in str(plan.tables()[0])
    assert plan.as_dict()["assumption"] == plan.assumption
    assert plan_recipe(made_recipe(), device="h200", gpus=3).assumption is None


def test_unknown_devices_are_refused() -> None:
    with pytest.raises(UsageError, match=r"no device 'abacus' is known; choose one of cpu, h200"):
        plan_recipe(made_recipe(), device="abacus")


def test_accumulated_batches_are_taken_whole_and_shared_only_once() -> None:
    """Eight devices are at most eight times as fast, and each holds a whole batch where there is
    one for each."""
    changes = ["training.accumulation=8", "training.batch_tokens=8192"]
    one, eight = (
        plan_recipe("pocket", changes, device="h200", gpus=gpus, bandwidth=1e6) for gpus in (1, 8)
    )
    assert eight.speed(eight.update) <= 8 * one.speed(one.update) * 1.001
    assert eight.efficiency(eight.update) <= 1.001
    assert eight.memory.activations == one.memory.activations


def test_efficiency_is_against_as_many_devices_as_fast_as_one_alone() -> None:
    several = plan_on_paper(5, compile="auto", steps=1000)
    one = plan_on_paper(compile="auto", steps=1000)
    assert several.together is not None
    assert one.tokens_per_second is not None
    assert one.execution.cuda_graphs, (
        "one alone replays a graph, and that is what several are compared with"
    )
    assert several.speed(several.alone) == pytest.approx(one.tokens_per_second)
    expected = several.tokens_per_second / (5 * one.tokens_per_second)  # type: ignore[operator]
    assert several.efficiency(several.together) == pytest.approx(expected)
    assert several.efficiency(several.each) == pytest.approx(
        one.alone.step_seconds / several.each.step_seconds
    )
    assert one.efficiency(one.update) == 1
    assert one.remarks() == []


def test_devices_that_gain_nothing_are_said() -> None:
    plan = plan_on_paper(5, compile="auto", steps=1000)
    (remark,) = plan.remarks()
    assert "5 devices are no faster than 1 (" in remark
    assert "raise training.batch_tokens (600 is the recipe's batch on each" in remark
    assert plan.as_dict()["remarks"] == [remark]
    use_language("zh")
    assert "5 个设备并不比 1 个更快" in plan.remarks()[0]


def test_half_as_many_devices_can_be_as_fast() -> None:
    plan = plan_recipe(
        made_recipe(batch_tokens=50_000 * 24, precision="auto"),
        device="h200",
        gpus=4,
        bandwidth=0.001,
    )
    slow = replace(plan, alone=replace(plan.alone, compute_seconds=1e9))
    (remark,) = slow.remarks()
    assert remark.startswith(
        ("4 devices are no faster than 2 (", "4 devices are hardly faster than 2 (")
    )


def test_rows_that_do_not_suffice_are_refused_as_training_would() -> None:
    plan = plan_recipe(made_recipe(), device="h200", gpus=6)
    sentence = (
        "5 rows cannot be shared by 6 processes; each needs at least one: raise "
        "training.batch_tokens to 144 or more, or start fewer processes"
    )
    run, _, _, scaling = plan.tables()
    assert sentence in str(run)
    assert len(scaling[2]) == 2
    assert all(len(row) == len(scaling[1]) for row in scaling[2]), (
        "a table has a cell for each heading"
    )
    assert set(scaling[2][0][1:]) == {"–"}
    found = plan.as_dict()
    assert sentence in found["refusal"]
    assert found["tokens_per_second"] is found["duration_seconds"] is None
    assert len(found["devices"]) == 1


@pytest.mark.parametrize("gpus", [0, 65_537])
def test_the_number_of_devices_is_bounded(gpus: int) -> None:
    with pytest.raises(
        UsageError, match=f"{gpus} devices are asked for; a plan is made for 1 to 65,536"
    ):
        plan_recipe(made_recipe(), device="h200", gpus=gpus)


def test_what_does_not_fit_is_planned_with_a_remedy_that_does() -> None:
    plan = plan_recipe(made_recipe(batch_tokens=100_000_000), device="h200", memory=1)
    assert not plan.fits
    assert "does NOT fit" in str(plan.tables())
    (remark,) = plan.remarks()
    assert " parts: training.batch_tokens=" in remark
    smaller = {"batch_tokens": plan.smaller.batch_tokens, "accumulation": plan.smaller.accumulation}
    assert plan_recipe(made_recipe(**smaller), device="h200", memory=1).fits


def test_published_figures_are_not_called_measured() -> None:
    assert plan_on_paper().as_dict()["device"]["measured"] is False


def test_attention_without_a_kernel_of_its_own_is_said_to_be_among_the_products() -> None:
    fused = plan_recipe("pocket", device="h200")
    assert tuple(row[0] for row in fused.tables()[2][2][1::-1]) == ("attention", "matrix products")
    written_out = replace(fused, seconds=replace(fused.seconds, attention=0.0))
    assert [row[0] for row in written_out.tables()[2][2][:2]] == [
        "matrix products, with attention's",
        "element-wise operations, softmax too",
    ]
