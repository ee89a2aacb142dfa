"""Plans of recipes: what they add up to, on paper and here."""

from collections.abc import Mapping
from functools import partial

import pytest

from headwise.errors import UsageError
from headwise.language import use_language
from headwise.planning.calibration import Timings, time_operations
from headwise.planning.tracing import Operation
from headwise.tasks import planning
from headwise.tasks.planning import plan_recipe, plan_subject
from tests.planning.models import made_recipe, made_subject


def test_a_plan_on_paper_adds_up() -> None:
    plan = plan_recipe(made_recipe(steps=1000, compile="auto"), device="h200", gpus=3, memory=1.5, bandwidth=20)
    parts = plan.as_dict()
    assert parts["memory"]["total"] == sum(value for name, value in parts["memory"].items() if name != "total")
    assert plan.execution.compiled
    assert plan.execution.cuda_graphs
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


def test_unknown_devices_are_refused() -> None:
    with pytest.raises(UsageError, match=r"no device 'abacus' is known; choose one of cpu, h200"):
        plan_recipe(made_recipe(), device="abacus")


def test_accumulated_batches_are_taken_whole_and_shared_only_once() -> None:
    """Eight devices are at most eight times as fast, and each holds a whole batch where there is one for each."""
    changes = ["training.accumulation=8", "training.batch_tokens=8192"]
    one, eight = (plan_recipe("pocket", changes, device="h200", gpus=gpus, bandwidth=1e6) for gpus in (1, 8))
    assert eight.tokens_per_second <= 8 * one.tokens_per_second * 1.001
    assert eight.memory.activations == one.memory.activations
