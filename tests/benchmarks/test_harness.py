"""The harness on stand-ins of known speed, and every benchmark once at toy size."""

import importlib
import json
import statistics
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _as_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks are run as scripts: their own folder is where they look first. The number of
    threads stays as it is."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)


@pytest.fixture
def harness() -> ModuleType:
    return importlib.import_module("harness")


def make_bench(harness: ModuleType, path: Path, **changes):
    options = harness.make_parser("stand-ins").parse_args(
        ["--device", "cpu", "--output", str(path)]
    )
    vars(options).update(changes)
    return harness.Bench("stand-ins", options)


def test_rates_ratios_and_floors(
    harness: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Twice the work in the same time is twice the rate; the clock is ours, since a busy machine
    oversleeps."""
    order, clock = [], [0.0]
    monkeypatch.setattr(harness, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(harness.CpuWatch, "foreign_share", lambda self: 0.0)

    def sleeper(name: str, work: float):
        def build():
            def run() -> float:
                order.append(name)
                clock[0] += 0.02
                return work

            return run

        return harness.Contender(name, build, floor=0.02 / work)

    bench = make_bench(harness, tmp_path / "out.json", rounds=5)
    lines = bench.compare(
        "sleep", [sleeper("one", 1.0), sleeper("two", 2.0)], unit="nap", baseline="one"
    )
    assert lines["one"].ratio == 1.0
    assert lines["two"].ratio == pytest.approx(2.0)
    assert lines["two"].floor * lines["two"].rate == pytest.approx(1.0)
    timed = order[4:]  # building and the memory run come first
    assert timed == ["one", "two"] * 5, "contenders take turns"
    written = json.loads(bench.save().read_text(encoding="utf-8"))
    assert [line["name"] for line in written["tables"][0]["lines"]] == ["one", "two"]
    assert written["machine"]["torch"] == torch.__version__
    assert "ratio to one" in capsys.readouterr().out


def test_a_disturbed_run_is_repeated_and_marked(
    harness: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shares = iter([0.5, 0.3, 0.2, 0.5, 0.0])
    monkeypatch.setattr(harness.CpuWatch, "foreign_share", lambda self: next(shares))
    bench = make_bench(harness, tmp_path / "out.json", rounds=2)
    runs = []
    line = bench.compare(
        "busy",
        [harness.Contender("it", lambda: lambda: runs.append(0) or 1.0)],
        unit="run",
        baseline="it",
    )["it"]
    assert line.foreign_share == [0.2, 0.0]
    assert len(runs) == 2 + 3 + 2
    assert line.quiet == [False, True]
    assert "it *" in capsys.readouterr().out


def test_quiet_rounds_decide_the_ratio(harness: ModuleType) -> None:
    baseline = harness.Line(
        "a", seconds=[1.0, 1.0, 1.0], work=[1.0] * 3, foreign_share=[0.0, 0.5, 0.0]
    )
    line = harness.Line("b", seconds=[0.5, 9.0, 9.0], work=[1.0] * 3, foreign_share=[0.0, 0.5, 0.5])
    assert harness.ratio_to(baseline, line) == 2.0
    baseline.foreign_share = [0.5] * 3
    assert harness.ratio_to(baseline, line) == statistics.median([2.0, 1 / 9, 1 / 9])


def test_own_work_is_not_foreign(harness: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """In two seconds four cores had 5 s of work, 3 of them ours: others used 2 of the 8 there
    were."""
    machine, own, clock = iter([(100.0, 4), (105.0, 4)]), iter([7.0, 10.0]), iter([50.0, 52.0])
    monkeypatch.setattr(harness, "_machine_seconds", lambda: next(machine))
    monkeypatch.setattr(harness, "_own_seconds", lambda: next(own))
    monkeypatch.setattr(harness.time, "perf_counter", lambda: next(clock))
    watch = harness.CpuWatch()
    watch.start()
    assert watch.foreign_share() == 0.25


def test_bucketed_batches_hold_every_pair_once_within_the_budget() -> None:
    synthetic = importlib.import_module("synthetic")
    pairs = synthetic.draw_pairs(997, vocab=101)
    batches = synthetic.bucketed_batches(pairs, tokens=401, pool=307)
    found = sorted(tuple(row[row > 2].tolist()) for batch in batches for row in batch.source)
    assert found == sorted(tuple(source) for source in pairs.sources)
    assert all(
        max(batch.source.numel(), batch.target_input.numel()) <= 401
        for batch in batches
        if len(batch.source) > 1
    )
    assert sum(batch.num_target_tokens for batch in batches) == sum(
        len(target) + 1 for target in pairs.targets
    )


@pytest.mark.parametrize("size", ["small", "base"])
def test_operations_are_counted_as_the_weights_say(size: str) -> None:
    """Every matrix of our model multiplies each token once, forward, and costs twice that
    backward."""
    sizes = importlib.import_module("sizes")
    chosen = sizes.SIZES[size]
    with torch.device("meta"):
        model = sizes.build_model(
            sizes.EncoderDecoderSettings(
                dim=chosen.dim,
                encoder={"layers": chosen.layers, "heads": chosen.heads},
                decoder={"layers": chosen.layers, "heads": chosen.heads},
                feed_forward={"kind": "relu", "hidden": chosen.hidden},
            ),
            source_size=chosen.vocab,
            target_size=chosen.vocab,
            generator=None,
        )
    matrices = sum(parameter.numel() for parameter in model.parameters() if parameter.ndim == 2)
    assert chosen.training_flops == 6 * matrices
    assert chosen.step_weights + chosen.encoding_weights == matrices


def test_typical_batches_are_as_the_whole_on_both_sides() -> None:
    synthetic = importlib.import_module("synthetic")
    batches = synthetic.bucketed_batches(synthetic.draw_pairs(1009, vocab=101), tokens=401)
    chosen = synthetic.typical_batches(batches, 3)
    assert len(chosen) == 3
    for count in (lambda batch: batch.num_source_tokens, lambda batch: batch.num_target_tokens):
        assert statistics.mean(map(count, chosen)) == pytest.approx(
            statistics.mean(map(count, batches)), rel=0.1
        )


@pytest.mark.parametrize(
    "name",
    [
        "training",
        "decoding",
        pytest.param("cpu_decoding", marks=pytest.mark.prove),
        "packing",
        pytest.param("waiting", marks=pytest.mark.prove),
        "linear",
        "ctc",
        pytest.param("sparse", marks=pytest.mark.prove),
    ],
)
def test_benchmarks_run(name: str, tmp_path: Path) -> None:
    module = importlib.import_module(f"bench_{name}")
    module.main(["--quick", "--device", "cpu", "--output", str(tmp_path / "out.json")])
    record = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert record["tables"]
    assert all(line["rate"] > 0 for table in record["tables"] for line in table["lines"])
    equal = [value for key, value in record.items() if key.startswith("same output")]
    assert equal == [1.0] * len(equal)
    assert bool(equal) == name.endswith("decoding")


def test_every_benchmark_says_what_it_measures() -> None:
    files = sorted(BENCHMARKS.glob("bench_*.py"))
    assert len(files) >= 4
    for path in files:
        header = path.read_text(encoding="utf-8").split('"""')[1]
        assert f"python benchmarks/{path.name}" in header
        assert "Measured:" in header
        assert "The floor" in header
