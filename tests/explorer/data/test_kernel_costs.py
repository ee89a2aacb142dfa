"""Measured costs: ours, and a user's own."""

import json
import os
from pathlib import Path

import pytest

from headwise.errors import DataError
from headwise.explorer.data.kernel_costs import FILE, _checked, find_costs, shipped_costs

ROOT = Path(__file__).resolve().parents[3]


def test_what_ships_is_what_the_experiments_say() -> None:
    """Forward + backward at 65,536 tokens, milliseconds, as docs/experiments/attention-kernels.md
    has them."""
    costs = shipped_costs()
    assert costs["machine"]["gpu"] == "NVIDIA H200"
    found = {point["kernel"]: point for point in costs["points"] if point["length"] == 65_536}
    section = (
        (ROOT / "docs" / "experiments" / "attention-kernels.md")
        .read_text(encoding="utf-8")
        .partition("every kernel by length and in the translator")[2]
    )
    for kernel in ("fused", "window", "longformer", "bigbird", "linformer", "linear", "performer"):
        row = next(line for line in section.splitlines() if line.startswith(f"| {kernel}"))
        forward, both = (float(part) for part in row.split("|")[6].split("/"))
        assert 1000 * found[kernel]["both_seconds"] == pytest.approx(both, rel=0.01), kernel
        assert 1000 * found[kernel]["forward_seconds"] == pytest.approx(forward, rel=0.02), kernel
    assert found["full"]["skipped"].startswith("would need")
    (reformer,) = (point for point in costs["points"] if point["kernel"] == "reformer")
    assert "an earlier run" in reformer["remark"], "what is of another run is said"
    assert "rank 64" in costs["conditions"]["kernels"]


def test_a_users_own_are_found_and_bad_ones_left_out(tmp_path: Path) -> None:
    point = {
        "kernel": "window",
        "length": 512,
        "forward_seconds": 0.1,
        "memory_mib": None,
        "distance": True,
    }
    content = {
        "machine": {"device": "cpu"},
        "conditions": {},
        "points": [point, "x", {"length": "no"}],
    }
    for name, text in (("a", json.dumps(content)), ("b", "{"), ("c", json.dumps({"points": 3}))):
        (tmp_path / name).mkdir()
        (tmp_path / name / FILE).write_text(text, encoding="utf-8")
    (found,) = find_costs(tmp_path)
    assert (found["name"], found["shipped"], found["machine"]) == ("a", False, {"device": "cpu"})
    (row,) = found["points"]
    assert (row["forward_seconds"], row["memory_mib"], row["distance"], row["skipped"]) == (
        0.1,
        None,
        None,
        None,
    )


def test_files_that_hold_anything(tmp_path: Path) -> None:
    huge = "1" + "0" * 400
    for name, text in (
        (
            "huge",
            (
                f'{{"points": [{{"kernel": "a\\ud800", "length": 7, "memory_mib": {huge}}}, '
                f'{{"length": {huge}}}]}}'
            ),
        ),
        ("half", '{"machine": {"a\\ud800": "\\ud800"}, "points": []}'),
        ("deep", "[" * 100_000),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / FILE).write_text(text, encoding="utf-8")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / FILE)
    os.makedirs(os.fsencode(tmp_path) + b"/by\xfftes")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/by\xfftes/" + FILE.encode())).write_text(
        '{"points": []}'
    )
    half, large = find_costs(tmp_path)
    assert (half["name"], half["machine"]) == ("half", {"a?": "?"})
    assert [(row["kernel"], row["length"], row["memory_mib"]) for row in large["points"]] == [
        ("a?", 7, None)
    ]


def test_links_that_lead_out_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / FILE).write_text(json.dumps({"points": []}), encoding="utf-8")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path / "out")
    assert find_costs(tmp_path / "root") == []


def test_a_file_without_points_is_refused() -> None:
    with pytest.raises(DataError, match="no table of measured points"):
        _checked({"points": 3}, Path("x"))
