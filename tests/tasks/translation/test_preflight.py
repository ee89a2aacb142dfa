"""What does not fit is said before, and said well when it happens after all."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from headwise.errors import DataError, SettingsError, UsageError
from headwise.planning.cost_prediction import MemoryParts
from headwise.tasks.memory_check import TooLargeError, explaining_memory
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import check_run, train
from headwise.tasks.translation import preflight
from headwise.tasks.translation.preflight import (
    bound_memory,
    check_memory,
    check_share,
    parts_of_process,
    warn_of_lost_dropout,
)
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.training.choices import ReplicatedLayout, ShardedLayout
from tests.planning.models import made_recipe, made_step, step_of
from tests.tasks.tiny import tiny_recipe

ROOT = Path(__file__).resolve().parents[3]


def with_room(monkeypatch: pytest.MonkeyPatch, room: int | None) -> None:
    monkeypatch.setattr(preflight, "available_memory", lambda device: room)


def needed(recipe: object) -> int:
    from headwise.planning.hardware import GLIBC_HEAP
    from headwise.tasks.planned_step import choose_execution
    from headwise.tasks.planner import Planner

    step = step_of(recipe)  # type: ignore[arg-type]
    execution, _ = choose_execution(step.training, "cpu")
    return Planner(step, execution, cuda=False).memory(GLIBC_HEAP).total


def prepare_long(tmp_path: Path, part: str) -> TranslationRecipe:
    """The source is twice as long as the target, and one source of `part` longer than all
    others."""
    for name in ("train", "valid", "test"):
        sources = ["ja nein " * 8] * 20 + ["ja " * 40] * (name == part)
        (tmp_path / f"{name}.de").write_text("\n".join(sources) + "\n", encoding="utf-8")
        (tmp_path / f"{name}.en").write_text(
            "yes no yes no yes no yes no\n" * len(sources), encoding="utf-8"
        )
    files = [f"data.{name}={tmp_path / name}" for name in ("train", "valid", "test")]
    return tiny_recipe(
        *files,
        "data.source=de",
        "data.target=en",
        "text={kind: words, size: 50}",
        "data.row_tokens=16",
        "model.embedding.tied=output",
        "data.filter.drop_duplicates=false",
    )


def test_source_rows_are_measured_before_a_limit_meets_them(tmp_path: Path) -> None:
    recipe = prepare_long(tmp_path, "none")
    limited = recipe_from(
        recipe.model_dump(mode="json"),
        ["model.encoder.attention={kind: linformer, max_length: 20}"],
    )
    with pytest.raises(
        SettingsError,
        match=r"encoder\.attention\.max_length is 20, but rows have 3\d tokens \(source rows",
    ):
        check_run(limited, directory=tmp_path / "data")


def test_a_test_sentence_over_the_limit_is_found_before_training(tmp_path: Path) -> None:
    recipe = prepare_long(tmp_path, "test")
    limited = recipe_from(
        recipe.model_dump(mode="json"),
        ["model.encoder.attention={kind: linformer, max_length: 40}"],
    )
    with pytest.raises(
        DataError, match=r":21: a source of 41 tokens in data\.test, but the model reads at most 40"
    ) as caught:
        check_run(limited, directory=tmp_path / "data")
    assert "set model.encoder.attention.max_length=41 or more" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ["decoding.required=[no]", "decoding.forbidden=[no]"],
            "required phrase 'no' holds 'no', which is forbidden",
        ),
        (["decoding.kind=greedy", "decoding.required=[no]"], "cannot plan for them; use kind=beam"),
        (["decoding.max_length=1000000000"], r"max_length is 1,000,000,000; at most 65,536 tokens"),
    ],
)
def test_a_search_that_cannot_be_is_refused_with_the_recipe(
    tmp_path: Path, changes: list[str], message: str
) -> None:
    recipe = prepare_long(tmp_path, "none")
    with pytest.raises(SettingsError, match=message):
        recipe_from(recipe.model_dump(mode="json"), changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            ["decoding.prefix=no no no no", "decoding.max_length=4"],
            "take 5 tokens, but max_length is 4 here",
        ),
        (["decoding.prefix=no Xyzzy"], "the prefix 'no Xyzzy' is outside the model's vocabulary"),
        (
            ["decoding.kind=beam", "decoding.required=[Xyzzy]"],
            "the required phrase 'Xyzzy' is outside the model's vocabulary",
        ),
        (
            ["decoding.forbidden=[Xyzzy]"],
            "the forbidden phrase 'Xyzzy' is outside the model's vocabulary",
        ),
    ],
)
def test_a_search_that_the_tokenizer_cannot_do_is_refused_before_training(
    tmp_path: Path, changes: list[str], message: str
) -> None:
    """By --check, and by a training, which has then made no checkpoint."""
    recipe = recipe_from(prepare_long(tmp_path, "none").model_dump(mode="json"), changes)
    assert isinstance(recipe, TranslationRecipe)
    with pytest.raises(UsageError, match=message):
        check_run(recipe, directory=tmp_path / "data")
    with pytest.raises(UsageError, match=message):
        train(recipe, run=tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_little_is_let_through_without_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "Planner", None)
    with_room(monkeypatch, 1 << 34)
    check_memory(made_recipe())
    with_room(monkeypatch, None)
    check_memory(made_recipe())


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
        check_memory(recipe)
    assert caught.value.exit_status == 2
    settings = str(caught.value).partition(" parts: ")[2].split()[:2]
    smaller = made_recipe(
        **{word.split("=")[0].split(".")[1]: int(word.split("=")[1]) for word in settings}
    )
    assert smaller.training.batch_tokens * smaller.training.accumulation == 1920
    check_memory(smaller)


def test_within_the_margin_it_is_a_warning_and_anyway_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recipe = made_recipe(batch_tokens=1920)
    with_room(monkeypatch, needed(recipe))
    with caplog.at_level(logging.WARNING):
        check_memory(recipe)
    assert "may not fit" in caplog.text
    with_room(monkeypatch, needed(recipe) // 8)
    check_memory(recipe, anyway=True)
    with pytest.raises(TooLargeError):
        check_memory(recipe, num_processes=64)  # on one machine they share its memory
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    check_memory(recipe, num_processes=64)


def test_a_model_that_is_itself_too_large_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with_room(monkeypatch, 1000)
    with pytest.raises(TooLargeError, match=r"a smaller batch is not enough: lower model\.dim"):
        check_memory(made_recipe())


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
    done = subprocess.run(
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


def test_rows_for_every_process_are_counted_before_anything_is_made() -> None:
    check_share(made_recipe(), num_processes=5)
    check_share(made_recipe(accumulation=2), num_processes=10)
    with pytest.raises(UsageError, match="5 rows cannot be shared by 6 processes"):
        check_share(made_recipe(), num_processes=6)


def test_a_rate_of_dropout_that_rounds_to_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    recipe = made_recipe()
    dropout = recipe.model.dropout.model_copy(
        update={"residual": 0.001, "attention": 0.001, "hidden": 0.003}
    )
    lost = recipe.model_copy(update={"model": recipe.model.model_copy(update={"dropout": dropout})})
    with caplog.at_level(logging.WARNING):
        warn_of_lost_dropout(recipe)
        assert caplog.text == ""
        warn_of_lost_dropout(lost)
    assert "model.dropout.residual is 0.001, but rates are multiples of 1/256" in caplog.text
    assert caplog.text.count("model.dropout.") == 1
