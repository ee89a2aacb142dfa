"""The benchmark of the graph loss once at toy size: the forms agree, and everything is timed."""

import importlib
import json
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_the_forms_agree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    bench = importlib.import_module("bench_graph_loss")
    output = tmp_path / "out.json"
    bench.main(["--quick", "--device", "cpu", "--rounds", "1", "--output", str(output)])
    record = json.loads(output.read_text(encoding="utf-8"))
    losses, paths = record["tables"]
    assert [line["name"] for line in losses["lines"]] == ["plain", "products", "products, grouped"]
    assert all(line["rate"] > 0 for table in (losses, paths) for line in table["lines"])
    differences = [value for key, value in record.items() if key.startswith("greatest")]
    assert len(differences) == 6
    assert max(differences) < 1e-5
