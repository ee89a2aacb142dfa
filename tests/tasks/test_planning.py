"""Plans of recipes: what they add up to, on paper and here."""

import time
from collections.abc import Mapping
from functools import partial

import pytest

from headwise.errors import UsageError
from headwise.language import use_language
from headwise.planning.calibration import Timings, time_operations
from headwise.planning.predicting import Execution
from headwise.planning.tracing import Operation
from headwise.tasks import planning
from headwise.tasks.planning import Planner, plan_recipe, plan_subject
from headwise.training import losses
from tests.planning.models import made_recipe, made_subject


def test_a_plan_on_paper_adds_up() -> None:
    plan = plan_recipe(made_recipe(steps=1000, compile="auto"), device="h200", gpus=3, memory=1.5, bandwidth=20)
    parts = plan.as_dict()
    assert parts["memory"]["total"] == sum(value for name, value in parts["memory"].items() if name != "total")
    assert plan.execution.compiled
    assert not plan.execution.cuda_graphs, "an update that waits for other devices is not recorded"
    assert plan.hardware.memory == 1.5 * 2**30
    assert plan.hardware.link == 20e9
    assert plan.run.tokens_per_step == pytest.approx(0.98 * 5 * 24)
    assert plan.duration == pytest.approx(1000 * plan.together.step_seconds)
    assert plan.together.traffic == int(4 / 3 * 4 * plan.run.parameters)
    titles = [title for title, _, _ in plan.tables()]
    assert titles[-1] == "3 devices, 20 GB/s each"
    use_language("zh")
    assert plan.tables()[0][0] == "运行"


def test_a_plan_of_this_machine_measures_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "time_operations", partial(time_operations, least=1e-4))
    plan = plan_subject(made_subject(), device="cpu")
    assert plan.hardware.measured
    assert plan.tokens_per_second > 0
    assert plan.fits
    assert len(plan.tables()) == 3


def test_a_large_batch_is_drawn_out_from_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    def take_time(operations: Mapping[Operation, int], device: object) -> Timings:
        return Timings.of({operation: 1e-9 * operation.work for operation in operations})

    monkeypatch.setattr(planning, "time_operations", take_time)
    subject = made_subject(batch_tokens=40 * 24)
    directly = plan_subject(subject, device="cpu")
    monkeypatch.setattr(planning, "CALIBRATION_TOKENS", 8 * 24)
    drawn_out = plan_subject(subject, device="cpu")
    for part in ("products", "attention", "other"):
        assert getattr(drawn_out.seconds, part) == pytest.approx(getattr(directly.seconds, part), rel=1e-6)


def test_accumulation_and_averages_are_counted() -> None:
    one = plan_recipe(made_recipe(), device="h200")
    two = plan_recipe(made_recipe(accumulation=2, ema=0.9), device="h200")
    assert two.memory.averaging == two.memory.weights
    assert two.run.tokens_per_step == 2 * one.run.tokens_per_step
    assert two.together.compute_seconds < 2 * one.together.compute_seconds


def test_execution_is_what_training_would_do(caplog: pytest.LogCaptureFixture) -> None:
    sharded = {"parallel": {"kind": "sharded"}}
    found = {
        (gpus, kind): plan_recipe(made_recipe(steps=1000, compile="auto", **extra), device="h200", gpus=gpus).execution
        for gpus in (1, 2)
        for kind, extra in (("replicated", {}), ("sharded", sharded))
    }
    compiled = {key: (execution.compiled, execution.cuda_graphs) for key, execution in found.items()}
    assert compiled == {
        (1, "replicated"): (True, True),
        (1, "sharded"): (True, True),
        (2, "replicated"): (True, False),
        (2, "sharded"): (False, False),
    }
    with pytest.raises(UsageError, match="an update that sums over processes is not recorded"):
        plan_recipe(made_recipe(cuda_graphs="on"), device="h200", gpus=2)


def test_compiled_gradients_are_sent_when_nothing_hides_them() -> None:
    plans = [plan_recipe(made_recipe(compile=how, steps=1000), device="h200", gpus=2) for how in ("on", "off")]
    for plan, hidden in zip(plans, (0.0, 1.0), strict=True):
        tail = plan.together.traffic / plan.hardware.link
        assert plan.together.exposed_seconds == pytest.approx(tail), "one bucket is never hidden"
        assert plan.execution.compiled == (hidden == 0.0)


@pytest.mark.parametrize("device", ["cpu", "h200"])
def test_a_hopeless_batch_is_planned_at_once_and_on_the_line_of_smaller_ones(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def memory_of(batch_tokens: int) -> int:
        planner = Planner(made_subject(batch_tokens=batch_tokens), Execution(bf16=False), cuda=device == "h200")
        parts = planner.memory(1.0)
        return parts.activations + parts.workspace

    # Few logits a chunk, so that a small model has many chunks.
    monkeypatch.setattr(losses, "CHUNK_LOGITS_CPU", 1 << 15)
    monkeypatch.setattr(losses, "CHUNK_LOGITS_CUDA", 1 << 15)
    watched = memory_of(1200 * 24)
    monkeypatch.setattr(planning, "MOST_CHUNKS", 8)
    assert memory_of(1200 * 24) == pytest.approx(watched, rel=0.04)
    began = time.monotonic()
    hopeless = memory_of(100_000_000)
    assert time.monotonic() - began < 5
    assert hopeless == pytest.approx(watched * 100_000_000 / (1200 * 24), rel=0.04)


def test_several_cpus_are_said_to_be_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "time_operations", partial(time_operations, least=1e-4))
    plan = plan_subject(made_subject(), device="cpu", gpus=3)
    assert "3 machines with a CPU like this one's" in str(plan.tables()[0])
    assert plan.as_dict()["assumption"] == plan.assumption
    assert plan_recipe(made_recipe(), device="h200", gpus=3).assumption is None


def test_unknown_devices_are_refused() -> None:
    with pytest.raises(UsageError, match=r"no device 'abacus' is known; choose one of cpu, h200"):
        plan_recipe(made_recipe(), device="abacus")


def test_accumulated_batches_are_taken_whole_and_shared_only_once() -> None:
    """Eight devices are at most eight times as fast, and each holds a whole batch where there is one for each."""
    changes = ["training.accumulation=8", "training.batch_tokens=8192"]
    one, eight = (plan_recipe("pocket", changes, device="h200", gpus=gpus, bandwidth=1e6) for gpus in (1, 8))
    assert eight.tokens_per_second <= 8 * one.tokens_per_second * 1.001
    assert eight.memory.activations == one.memory.activations
