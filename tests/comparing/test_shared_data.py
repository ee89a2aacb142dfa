"""What is checked before a comparison starts, said once; and data that runs share."""

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from headwise.comparing.recipes import compare
from headwise.comparing.shared_data import prepare_runs
from headwise.comparing.variants import Run, plan_comparison
from headwise.data.pairs.preparation import open_prepared
from headwise.data.pairs.shared_preparation import link_prepared, preparing_alone
from headwise.errors import DataError, UsageError
from headwise.tasks.table import find_task
from headwise.training.run_lock import release_lock, take_lock
from tests.tasks.tiny import OVERRIDES
from tests.tasks.translation.test_task import Watcher

NORMS = ("model.norm.kind=layer,rms",)


def plan(directory: Path, *words: str, seeds: tuple[int, ...] = ()) -> list[Run]:
    letters = "text={kind: characters}"  # learnt in no time
    return plan_comparison(
        ["pocket", *OVERRIDES, letters, *words], seeds=seeds, directory=directory
    )


def test_files_that_are_missing_are_said_once_and_nothing_begins(tmp_path: Path) -> None:
    words = ["pocket", *OVERRIDES, *NORMS, f"data.valid={tmp_path}/nowhere"]
    with pytest.raises(DataError, match=r"nowhere\.en") as found:
        compare(words, directory=tmp_path / "here", seeds=(1, 2))
    assert "variant" not in str(found.value)
    assert not (tmp_path / "here" / "runs").exists()


def test_what_is_wrong_with_one_variant_names_it(tmp_path: Path) -> None:
    words = (
        f"data.train={{kind: pocket, split: train, count: 300}},{tmp_path}/first,{tmp_path}/second"
    )
    with pytest.raises(DataError) as found:
        prepare_runs(plan(tmp_path, words), directory=tmp_path, events=Watcher())
    lines = str(found.value).splitlines()
    assert len(lines) == 2
    assert all(
        f"variant data.train={tmp_path}/{name}: " in line
        for name, line in zip(("first", "second"), lines, strict=True)
    )
    with pytest.raises(UsageError, match=r"^variant training.freeze=nosuch: .*nosuch"):
        prepare_runs(
            plan(tmp_path, "training.freeze=[encoder.*],[nosuch]"),
            directory=tmp_path,
            events=Watcher(),
        )


def test_text_that_is_too_little_is_refused_before_the_first_run(tmp_path: Path) -> None:
    runs = plan(
        tmp_path, "text={kind: sentencepiece, size: 500},{kind: sentencepiece, size: 90000}"
    )
    with pytest.raises(UsageError, match=r"text\.size is 90,000"):
        prepare_runs(runs, directory=tmp_path, events=Watcher())
    assert not (tmp_path / "runs").exists()


def test_runs_that_read_the_same_share_files_and_each_stands_alone(tmp_path: Path) -> None:
    watcher, runs = Watcher(), plan(tmp_path, *NORMS, seeds=(1, 2))
    homes = prepare_runs(runs, directory=tmp_path, events=watcher)
    home = homes[runs[0].label]
    assert set(homes.values()) == {home}
    assert sum("4 run(s) is prepared once" in note for note in watcher.notes) == 1
    for run in runs:
        link_prepared(home, run.directory / "data")
    shared, own = (path / "train" / "source.tokens" for path in (home, runs[0].directory / "data"))
    assert own.stat().st_ino == shared.stat().st_ino
    assert own.stat().st_nlink == len(runs) + 1
    expected = open_prepared(home).fingerprint
    copy = shutil.copytree(runs[0].directory, tmp_path / "copy")
    shutil.rmtree(home)
    assert open_prepared(copy / "data").fingerprint == expected
    assert prepare_runs(runs, directory=tmp_path, events=watcher) == {}, "each has its own"


def test_shared_data_is_what_each_run_would_prepare_for_itself(tmp_path: Path) -> None:
    runs = plan(tmp_path, *NORMS, "training.seed=7")
    home = prepare_runs(runs, directory=tmp_path, events=Watcher())[runs[1].label]
    alone = find_task(runs[1].recipe).prepare(runs[1].recipe, tmp_path / "alone", Watcher())
    assert open_prepared(home).fingerprint == alone.fingerprint


def test_what_differs_is_prepared_apart(tmp_path: Path) -> None:
    runs = plan(tmp_path, "data.row_tokens=64,72", "model.dim=16,32")
    homes = prepare_runs(runs, directory=tmp_path, events=Watcher())
    assert len(set(homes.values())) == 2
    assert homes[runs[0].label] == homes[runs[1].label] != homes[runs[2].label]


def test_damage_is_made_good_before_it_is_shared(tmp_path: Path) -> None:
    runs = plan(tmp_path, *NORMS)
    home = prepare_runs(runs, directory=tmp_path, events=Watcher())[runs[0].label]
    before, tokens = open_prepared(home).fingerprint, home / "train" / "source.tokens"
    content = bytearray(tokens.read_bytes())
    content[3] ^= 1
    tokens.write_bytes(content)
    prepare_runs(runs, directory=tmp_path, events=Watcher())
    assert open_prepared(home).fingerprint == before


def test_a_run_that_another_process_trains_is_left_alone(tmp_path: Path) -> None:
    runs = plan(tmp_path, *NORMS)
    runs[0].directory.mkdir(parents=True)
    lock = take_lock(runs[0].directory)
    homes = prepare_runs(runs, directory=tmp_path, events=Watcher())
    release_lock(lock)
    assert list(homes) == [runs[1].label]


def test_two_that_prepare_at_once_do_it_one_after_the_other(tmp_path: Path) -> None:
    first, told = contextlib.ExitStack(), list[str]()
    first.enter_context(preparing_alone(tmp_path, lambda: told.append("first")))

    def wait() -> None:
        told.append("second")
        first.close()

    with preparing_alone(tmp_path, wait):
        assert told == ["second"]


def test_a_disk_without_links_gets_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(1, "no links here")

    (tmp_path / "home" / "train").mkdir(parents=True)
    (tmp_path / "home" / "train" / "file").write_bytes(b"content")
    monkeypatch.setattr(os, "link", refuse)
    link_prepared(tmp_path / "home", tmp_path / "run" / "data")
    found = tmp_path / "run" / "data" / "train" / "file"
    assert found.read_bytes() == b"content"
    assert found.stat().st_nlink == 1
    (tmp_path / "home" / "train" / "file").write_bytes(b"other")
    link_prepared(tmp_path / "home", tmp_path / "run" / "data")
    assert found.read_bytes() == b"content", "what a run has is its own"
