import contextlib
import itertools
import os
import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from headwise.errors import UsageError
from headwise.storage import (
    MANIFEST,
    find_leftovers,
    publish_directory,
    publishing,
    remove_leftovers,
    verify_directory,
)
from tests.storage.things import publish


def test_an_existing_directory_is_replaced_only_when_asked(thing: Path) -> None:
    with pytest.raises(UsageError, match="exists already; choose another name or remove it"):
        publish(thing, "other")
    publish(thing, "other", replace=True)
    assert (thing / "a.txt").read_text(encoding="utf-8") == "other"
    assert [child.name for child in thing.parent.iterdir()] == ["thing"], (
        "nothing is left beside it"
    )


def test_a_failure_while_writing_leaves_the_old_state(thing: Path) -> None:
    with (
        contextlib.suppress(KeyboardInterrupt),
        publish_directory(thing, kind="thing", replace=True) as temporary,
    ):
        (temporary / "a.txt").write_text("half", encoding="utf-8")
        raise KeyboardInterrupt
    assert (thing / "a.txt").read_text(encoding="utf-8") == "hello"
    assert [child.name for child in thing.parent.iterdir()] == ["thing"]


def end_before_line(number: int, path: Path) -> bool:
    """In a child process: replace `path`, but end at the given line of publishing.py as `kill -9`
    would; whether it got through.
    """
    child = os.fork()
    if child == 0:
        count = itertools.count(1)

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            if frame.f_code.co_filename != publishing.__file__:
                return None
            if event == "line" and next(count) == number:
                os._exit(9)
            return trace

        sys.settrace(trace)
        publish(path, "new", replace=True)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("exchange", [True, False])
def test_ended_at_any_line_it_is_the_old_one_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool
) -> None:
    """Without the exchange there is one moment without either; the next start puts the old one
    back.
    """
    if not exchange:
        monkeypatch.setattr(publishing, "_exchange", lambda first, second: False)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    seen, absent = [], 0
    for number in itertools.count(1):
        path = tmp_path / str(number) / "thing"
        publish(path, "old")
        done = end_before_line(number, path)
        absent += not path.exists()
        if exchange:
            verify_directory(path, kind="thing")
        remove_leftovers(path.parent, re.compile("thing"))
        assert find_leftovers(path.parent, re.compile("thing")) == []
        verify_directory(path, kind="thing")
        seen.append((path / "a.txt").read_text(encoding="utf-8"))
        assert seen == sorted(seen, reverse=True), "old until it is new"
        if done:
            break
    assert set(seen) == {"old", "new"}
    assert len(seen) > 15
    assert (absent == 0) == exchange


def test_the_name_never_leads_nowhere(thing: Path) -> None:
    """Another thread looks all the time while the directory is replaced again and again."""
    missed, stop = [], threading.Event()

    def look() -> None:
        while not stop.is_set():
            if not (thing / MANIFEST).exists():
                missed.append(thing)

    watcher = threading.Thread(target=look)
    watcher.start()
    for number in range(40):
        publish(thing, f"content {number}", replace=True)
    stop.set()
    watcher.join()
    assert not missed
    assert (thing / "a.txt").read_text(encoding="utf-8") == "content 39"


def test_without_renameat2_it_is_replaced_all_the_same(
    thing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_system_rename", lambda: None)
    publish(thing, "other", replace=True)
    assert (thing / "a.txt").read_text(encoding="utf-8") == "other"
    assert [child.name for child in thing.parent.iterdir()] == ["thing"]


def test_if_the_second_rename_fails_the_old_one_is_put_back(
    thing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def fail(source: Path, target: Path) -> None:
        if source.name == "thing.incomplete":
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(publishing, "_exchange", lambda first, second: False)
    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="Input/output error"):
        publish(thing, "other", replace=True)
    assert (thing / "a.txt").read_text(encoding="utf-8") == "hello"
    assert [child.name for child in thing.parent.iterdir()] == ["thing"]


def test_leftovers_are_found_and_removed(tmp_path: Path) -> None:
    own = re.compile(r"[a-z]|c/d|g\.json")
    for name in ("a.incomplete/b.incomplete", "c/d.retired", "c/e", "f.replaced"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "f").mkdir()
    (tmp_path / "g.json.17.incomplete").write_text("half", encoding="utf-8")
    (tmp_path / "notes.incomplete").write_text("mine", encoding="utf-8")
    (tmp_path / "c" / "z.retired").write_text("mine", encoding="utf-8")
    left = [path.relative_to(tmp_path).as_posix() for path in find_leftovers(tmp_path, own)]
    assert left == ["a.incomplete", "c/d.retired", "f.replaced", "g.json.17.incomplete"]
    remove_leftovers(tmp_path, own)
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "c",
        "c/e",
        "c/z.retired",
        "f",
        "notes.incomplete",
    ]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_of_a_symbolic_link_what_it_leads_to_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(publishing, "_system_rename", lambda: None)
    (tmp_path / "big disk").mkdir()
    link = tmp_path / "model"
    link.symlink_to(Path("big disk", "model"))
    for content in ("old", "new"):  # at first the link leads nowhere
        with publish_directory(link, kind="thing", replace=True) as directory:
            (directory / "content").write_text(content, encoding="utf-8")
        verify_directory(link, kind="thing")
        assert (tmp_path / "big disk" / "model" / "content").read_text(encoding="utf-8") == content
    assert os.readlink(link) == str(Path("big disk", "model"))
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "MANIFEST.json",
        "big disk",
        "content",
        "model",
        "model",
    ]
    with pytest.raises(UsageError, match="exists already"), publish_directory(link, kind="thing"):
        pass
