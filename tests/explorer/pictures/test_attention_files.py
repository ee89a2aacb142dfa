"""Attention as a file: what is read back is what a model looked at."""

import json
from pathlib import Path

import numpy as np
import pytest

from headwise.errors import UsageError
from headwise.explorer.pictures import attention_files
from headwise.explorer.pictures.attention_files import check_ending, write_attention
from tests.explorer.examples import make_trace


def test_the_numbers_come_back(tmp_path: Path) -> None:
    trace = make_trace()
    write_attention([trace, trace], tmp_path / "new" / "a.json", title="t")
    first, second = json.loads((tmp_path / "new" / "a.json").read_text(encoding="utf-8"))["traces"]
    assert first == second
    assert tuple(first["source_pieces"]) == trace.source_pieces
    assert first["text"] == trace.target_text
    for attention, entry in zip(trace.maps, first["maps"], strict=True):
        assert (entry["name"], entry["kind"], entry["layer"]) == (
            attention.name,
            attention.kind,
            attention.layer,
        )
        assert np.abs(np.array(entry["weights"]) - attention.weights).max() <= 5e-7


def test_the_ending_chooses_the_form(tmp_path: Path) -> None:
    write_attention([make_trace()], tmp_path / "a.HTML", title="t")
    write_attention([make_trace()], tmp_path / "a.png", title="t")
    assert (tmp_path / "a.HTML").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match=r"'a\.svg' does not end in \.html, \.png, \.json"):
        check_ending(tmp_path / "a.svg")


def test_what_cannot_be_shown_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no sentence whose attention"):
        write_attention([], tmp_path / "a.html", title="t")
    with pytest.raises(UsageError, match="a picture shows one sentence"):
        write_attention([make_trace(), make_trace()], tmp_path / "a.png", title="t")
    monkeypatch.setattr(attention_files, "MAX_NUMBERS", 100)
    with pytest.raises(
        UsageError, match=r"the first 1 sentences has [\d,]+ numbers, and a file holds at most 100"
    ):
        write_attention([make_trace()], tmp_path / "a.json", title="t")
    assert list(tmp_path.iterdir()) == []
