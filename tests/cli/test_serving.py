"""`headwise serve` and `headwise key`: what is refused before a port is opened."""

import os
import socket
from pathlib import Path

import pytest

from headwise.cli.serve import require_server
from tests.cli.conftest import Headwise

BUNDLE = Path(__file__).resolve().parents[1] / "fixtures" / "format-1" / "bundle"


def test_a_key_is_shown_once_and_hashed(headwise: Headwise, tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    answer = headwise("key", "alice", "--keys", file)
    assert answer.status == 0
    assert answer.out.startswith("hw_")
    assert answer.out.strip() not in file.read_text(encoding="utf-8")
    again = headwise("key", "alice", "--keys", file)
    assert again.status == 2
    assert "alice" in again.err


def test_what_cannot_be_served_is_said_before_it_begins(headwise: Headwise, tmp_path: Path) -> None:
    public = headwise("serve", BUNDLE, "--host", "0.0.0.0")
    assert public.status == 2
    assert "no keys were given" in public.err
    missing = headwise("serve", tmp_path / "nothing")
    assert missing.status == 3
    assert "does not exist" in missing.err
    twice = headwise("serve", BUNDLE, BUNDLE)
    assert twice.status == 2
    assert "two models are called 'bundle'" in twice.err
    assert headwise("serve", BUNDLE, "--queue", "0").status == 2
    assert headwise("serve", BUNDLE, "--keys", tmp_path / "none.txt").status == 2
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = headwise("serve", BUNDLE, "--port", str(taken.getsockname()[1]))
    assert busy.status == 2
    assert "cannot be listened on" in busy.err


def test_what_torch_keeps_is_bounded_before_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    require_server()
    assert (
        os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] == os.environ["LRU_CACHE_CAPACITY"] == "256"
    )
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "7")
    require_server()
    assert os.environ["LRU_CACHE_CAPACITY"] == "7"
