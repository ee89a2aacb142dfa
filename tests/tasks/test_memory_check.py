"""What does not fit is said before, and said well when it happens after all."""

import logging
import os
import re
import sys
from pathlib import Path

import pytest
import torch

from headwise.planning.cost_prediction import MemoryParts
from headwise.tasks import memory_check
from headwise.tasks.memory_check import (
    TooLargeError,
    bound_memory,
    check_memory,
    explaining_memory,
    parts_of_process,
)
from headwise.training.choices import ReplicatedLayout, ShardedLayout
from tests.planning.models import made_recipe, made_step, step_of
from tests.processes import run_python

ROOT = Path(__file__).resolve().parents[2]


def with_room(monkeypatch: pytest.MonkeyPatch, room: int | None) -> None:
    monkeypatch.setattr(memory_check, "available_memory", lambda device: room)


def needed(recipe: object) -> int:
    from headwise.planning.hardware import GLIBC_HEAP
    from headwise.tasks.planned_step import choose_execution
    from headwise.tasks.planner import Planner

    step = step_of(recipe)  # type: ignore[arg-type]
    execution, _ = choose_execution(step.training, "cpu")
    return Planner(step, execution, cuda=False).memory(GLIBC_HEAP).total


def test_little_is_let_through_without_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_check, "Planner", None)
    with_room(monkeypatch, 1 << 34)
    check_memory(step_of(made_recipe()))
    with_room(monkeypatch, None)
    check_memory(step_of(made_recipe()))


def test_the_bound_is_above_the_prediction() -> None:
    for batch in (120, 1200):
        assert bound_memory(made_step(batch_tokens=batch)) > needed(made_recipe(batch_tokens=batch))


def test_far_too_much_is_refused_with_a_batch_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = made_recipe(batch_tokens=1920)
    room = needed(recipe) // 2
    with_room(monkeypatch, room)
    with pytest.raises(
        match=r"cut the batch into (4|8) parts: training.batch_tokens=(480|240) .*--anyway",
    ) as caught:
        check_memory(step_of(recipe))
    assert caught.value.exit_status == 2
    settings = str(caught.value).partition(" parts: ")[2].split()[:2]
    smaller = made_recipe(
        **{word.split("=")[0].split(".")[1]: int(word.split("=")[1]) for word in settings}
    )
    assert smaller.training.batch_tokens * smaller.training.accumulation == 1920
    check_memory(step_of(smaller))


def test_within_the_margin_it_is_a_warning_and_anyway_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recipe = made_recipe(batch_tokens=1920)
    with_room(monkeypatch, needed(recipe))
    with caplog.at_level(logging.WARNING):
        check_memory(step_of(recipe))
    assert "may not fit" in caplog.text
    with_room(monkeypatch, needed(recipe) // 8)
    check_memory(step_of(recipe), anyway=True)
    with pytest.raises(TooLargeError):
        check_memory(step_of(recipe), num_processes=64)  # on one machine they share its memory
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    check_memory(step_of(recipe), num_processes=64)


def test_a_model_that_is_itself_too_large_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with_room(monkeypatch, 1000)
    with pytest.raises(TooLargeError, match=r"a smaller batch is not enough: lower model\.dim"):
        check_memory(step_of(made_recipe()))


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        MemoryError(),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't "
            "allocate memory"
        ),
    ],
)
def test_running_out_names_the_setting_and_the_checkpoint(error: Exception, tmp_path: Path) -> None:
    training = made_recipe(batch_tokens=512, accumulation=3).training

    def run() -> None:
        with explaining_memory(training, tmp_path):
            raise error

    with pytest.raises(TooLargeError, match="nothing had been saved yet"):
        run()
    (tmp_path / "LATEST").write_text("step-70\n")
    with pytest.raises(TooLargeError, match=r"batch_tokens=256 training.accumulation=6") as caught:
        run()
    assert str(tmp_path / "checkpoints" / "step-70") in str(caught.value)


def test_other_errors_pass(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="shapes"),
        explaining_memory(made_recipe().training, tmp_path),
    ):
        raise RuntimeError("shapes do not fit")


PROGRAM = """
import resource, sys
from headwise.cli.main import main
import torch, headwise.tasks.run
torch.set_num_threads(1)
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (900 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
refused = main(sys.argv[1:])
sys.stderr.write("then nevertheless\\n")
sys.exit(10 * refused + main([*sys.argv[1:], "--anyway"]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on the address space that holds")
def test_a_huge_batch_under_a_real_limit(tmp_path: Path) -> None:
    words = [
        "train",
        "pocket",
        "--run",
        str(tmp_path / "run"),
        "data.train.count=700",
        "data.valid=null",
        "data.test=null",
    ]
    words += [
        "training.batch_tokens=60000",
        "training.steps=2",
        "text={kind: characters}",
        "training.compile=off",
    ]
    done = run_python(
        [sys.executable, "-c", PROGRAM, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "LANG": "C", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    before, _, after = done.stderr.partition("then nevertheless")
    assert re.search(
        r"are free; (halve the batch|cut the batch into \d+ parts): training.batch_tokens=", before
    ), done.stderr
    assert (
        "memory ran out with training.batch_tokens=60,000; start a new run with half the batch"
        in after
    ), done.stderr
    assert done.returncode == 22
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("accumulation", "processes", "kind", "expected"),
    [
        (1, 1, "replicated", (600, 400)),
        (1, 4, "replicated", (600, 100)),  # the rows of a batch are shared
        (4, 4, "replicated", (600, 400)),  # each takes a whole batch
        (3, 2, "replicated", (600, 300)),  # three batches as two times two of three quarters
        (4, 2, "sharded", (300, 400)),
    ],
)
def test_what_one_of_several_processes_holds(
    accumulation: int, processes: int, kind: str, expected: tuple
) -> None:
    memory = MemoryParts(
        weights=200, gradients=100, optimizer=400, averaging=0, activations=250, workspace=50
    )
    training = made_recipe().training.model_copy(
        update={
            "accumulation": accumulation,
            "parallel": ShardedLayout() if kind == "sharded" else ReplicatedLayout(),
        }
    )
    assert parts_of_process(memory, training, num_processes=processes) == expected
