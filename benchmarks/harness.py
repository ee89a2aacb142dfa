"""How every benchmark here measures: side by side, in rounds, on a machine that is watched.

    one round = every contender once, in turn
    rate      = work / seconds
    ratio     = median over rounds of rate / the baseline's rate
    of floor  = (least seconds the hardware needs for the work) / seconds; in training: the MFU

Contenders take turns because machines drift: a ratio formed within a round survives what an
absolute number does not. A run during which other processes used more than a few per cent of the
machine measures its neighbours: it is repeated, and marked with * if it stays disturbed. The
ceilings (matrix products per second, bytes per second) are measured in the same run. On a GPU the
clock stops after the device is done; the first run of each contender warms up and is not counted.

Every benchmark prints its tables and writes `benchmarks/results/NAME.json`. Tested by
tests/benchmarks.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
# A benchmark is run as a script, from anywhere, installed or not; the peers live in
# tests/reference.
sys.path += [str(place) for place in (ROOT, ROOT / "src") if str(place) not in sys.path]

import torch  # noqa: E402

from headwise.planning.peak_memory import MemoryMeter  # noqa: E402

MAX_FOREIGN_SHARE = 0.04
NUM_REPEATS = 2

Run = Callable[[], float]
"""Does the work of one round and says how much it was (tokens, sentences, …)."""


@dataclass(frozen=True)
class Contender:
    """One of the things compared: how it is made, and what the hardware alone would need for a unit
    of its work."""

    name: str
    build: Callable[[], Run]
    floor: float = 0.0
    """Seconds for one unit of work at the measured ceilings; 0: not known."""


@dataclass
class Line:
    """What was measured of one contender."""

    name: str
    seconds: list[float] = field(default_factory=list)
    work: list[float] = field(default_factory=list)
    foreign_share: list[float | None] = field(default_factory=list)
    memory_mib: float | None = None
    floor: float = 0.0
    ratio: float = 1.0

    @property
    def rates(self) -> list[float]:
        return [work / seconds for work, seconds in zip(self.work, self.seconds, strict=True)]

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    @property
    def quiet(self) -> list[bool]:
        """For each round, whether the machine was ours."""
        return [share is None or share <= MAX_FOREIGN_SHARE for share in self.foreign_share]

    @property
    def disturbed(self) -> bool:
        return not all(self.quiet)

    def as_dict(self) -> dict[str, Any]:
        rates = {
            "rate": self.rate,
            "lowest": min(self.rates),
            "highest": max(self.rates),
            "disturbed": self.disturbed,
        }
        return asdict(self) | rates | {"of_floor": self.floor * self.rate}


def ratio_to(baseline: Line, line: Line) -> float:
    """Median over rounds of the ratio within a round; rounds in which both were undisturbed, if
    there are any."""
    ratios = [own / other for own, other in zip(line.rates, baseline.rates, strict=True)]
    both_quiet = [own and other for own, other in zip(line.quiet, baseline.quiet, strict=True)]
    return statistics.median(
        [ratio for ratio, quiet in zip(ratios, both_quiet, strict=True) if quiet] or ratios
    )


class CpuWatch:
    """How much of the machine other processes used since `start`, from /proc/stat; None where that
    cannot be told."""

    def start(self) -> None:
        self._machine, self._own = _machine_seconds(), _own_seconds()
        self._clock = time.perf_counter()

    def foreign_share(self) -> float | None:
        machine, elapsed = _machine_seconds(), time.perf_counter() - self._clock
        # The kernel counts in hundredths of a second: a shorter run says nothing.
        if machine is None or self._machine is None or elapsed < 0.2:
            return None
        busy = machine[0] - self._machine[0] - (_own_seconds() - self._own)
        return max(0.0, busy / (elapsed * machine[1]))


def _machine_seconds() -> tuple[float, int] | None:
    """Seconds all processes together have used, and the number of cores they used them on."""
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    user, nice, system, _idle, _wait, interrupt, soft, steal = map(int, lines[0].split()[1:9])
    num_cores = sum(line.startswith("cpu") for line in lines) - 1
    return (user + nice + system + interrupt + soft + steal) / os.sysconf("SC_CLK_TCK"), num_cores


COMPANIONS: list[int] = []
"""Process ids of peers that run beside us: their time is ours (the system counts a child's only
when it has ended)."""


def _own_seconds() -> float:
    times = os.times()
    own = times.user + times.system + times.children_user + times.children_system
    return own + sum(_seconds_of(process) for process in COMPANIONS)


def _seconds_of(process: int) -> float:
    try:
        fields = (
            Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        )
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    """One benchmark's options, measurements and report."""

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.name, self.options = name, options
        self.device = torch.device(options.device)
        torch.set_num_threads(options.threads)
        self.record: dict[str, Any] = {
            "name": name,
            "machine": machine_facts(self.device),
            "tables": [],
        }
        print(
            f"# {name}   "
            + "   ".join(f"{key}: {value}" for key, value in self.record["machine"].items())
        )

    def compare(
        self,
        title: str,
        contenders: Sequence[Contender],
        *,
        unit: str,
        baseline: str,
        processes: bool = False,
    ) -> dict[str, Line]:
        """Build, warm up and measure the contenders in rounds; print and keep the table; returns
        its lines by name.

        `processes`: a unit of work is a process of its own, so it is shown in milliseconds, and
        memory is not ours to see.
        """
        meter = MemoryMeter(self.device)
        runs, lines = {}, {}
        for contender in contenders:
            meter.start_building()
            runs[contender.name] = contender.build()
            runs[contender.name]()
            memory = None if processes else meter.peak_of(runs[contender.name])
            lines[contender.name] = Line(contender.name, memory_mib=memory, floor=contender.floor)
        for _ in range(self.options.rounds):
            for name, run in runs.items():
                self._measure(run, lines[name])
        for line in lines.values():
            line.ratio = ratio_to(lines[baseline], line)
        self._report(title, list(lines.values()), unit=unit, baseline=baseline, processes=processes)
        return lines

    def _measure(self, run: Run, line: Line) -> None:
        """One run on the clock; of a run and its repeats the least disturbed counts."""
        watch, tries = CpuWatch(), []
        for _ in range(1 if self.options.quick else 1 + NUM_REPEATS):
            synchronize(self.device)
            watch.start()
            began = time.perf_counter()
            work = run()
            synchronize(self.device)
            tries.append((watch.foreign_share(), time.perf_counter() - began, work))
            if tries[-1][0] is None or tries[-1][0] <= MAX_FOREIGN_SHARE:
                break
        share, seconds, work = min(tries, key=lambda one: one[0] or 0.0)
        line.foreign_share.append(share)
        line.seconds.append(seconds)
        line.work.append(work)

    def _report(
        self, title: str, lines: list[Line], *, unit: str, baseline: str, processes: bool
    ) -> None:
        record = {
            "title": title,
            "unit": unit,
            "baseline": baseline,
            "lines": [line.as_dict() for line in lines],
        }
        self.record["tables"].append(record)
        shown = f"ms/{unit}" if processes else f"{unit}/s"
        rows = [(title, shown, "spread", f"ratio to {baseline}", "of floor", "peak MiB")]
        for line in lines:
            rates = [1000 / rate for rate in line.rates] if processes else line.rates
            rows.append(
                (
                    line.name + (" *" if line.disturbed else ""),
                    _number(statistics.median(rates)),
                    f"{_number(min(rates))}-{_number(max(rates))}",
                    f"{line.ratio:.2f}",
                    f"{line.floor * line.rate:.0%}" if line.floor else "",
                    "" if line.memory_mib is None else f"{line.memory_mib:.0f}",
                )
            )
        print_table(rows)
        if any(line.disturbed for line in lines):
            print(f"* other processes used more than {MAX_FOREIGN_SHARE:.0%} of the machine")

    def measure_ceiling(self, key: str, measure: Callable[[], float]) -> float:
        """A speed of the hardware, in units a second: the best of a few tries, more of them on a
        busy machine."""
        watch, found = CpuWatch(), []
        for _ in range(1 if self.options.quick else 1 + 2 * NUM_REPEATS):
            watch.start()
            found.append(measure())
            share = watch.foreign_share()
            if share is None or share <= MAX_FOREIGN_SHARE:
                break
            time.sleep(1)
        self.note(key, max(found))
        return max(found)

    def note(self, key: str, value: Any) -> None:
        """Keep and print something that is not a table, e.g. a ceiling."""
        self.record[key] = value
        print(f"{key}: {value:,.4g}" if isinstance(value, float) else f"{key}: {value}")

    def save(self) -> Path:
        path = Path(self.options.output) if self.options.output else RESULTS / f"{self.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.record, indent=1) + "\n", encoding="utf-8")
        print(f"written: {path}")
        return path


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """The options all benchmarks have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: shows that it runs, measures nothing"
    )
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--threads", type=int, default=torch.get_num_threads(), help="of torch, on the CPU"
    )
    parser.add_argument(
        "--output", "--json", help="where the JSON goes (default: benchmarks/results/NAME.json)"
    )
    return parser


def machine_facts(device: torch.device) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "load": round(os.getloadavg()[0], 2),
    }
    return facts | ({"gpu": torch.cuda.get_device_name(device)} if device.type == "cuda" else {})


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def product_speed(device: torch.device, dtype: torch.dtype, *, quick: bool = False) -> float:
    """FLOP/s of a large square matrix product: the ceiling of training."""
    size = 256 if quick else 8192 if device.type == "cuda" else 2048
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    return 2 * size**3 / _least_seconds(lambda: a @ b, device, num_runs=3 if quick else 10)


def read_speed(device: torch.device, *, quick: bool = False) -> float:
    """Bytes/s of reading memory too large for the caches: the ceiling of decoding one sentence."""
    size = (1 << 20) if quick else (1 << 30) if device.type == "cuda" else (1 << 26)
    x = torch.ones(size, device=device)
    return 4 * size / _least_seconds(lambda: x.sum(), device, num_runs=3 if quick else 10)


def _least_seconds(run: Callable[[], object], device: torch.device, *, num_runs: int) -> float:
    run()
    found = []
    for _ in range(num_runs):
        synchronize(device)
        began = time.perf_counter()
        run()
        synchronize(device)
        found.append(time.perf_counter() - began)
    return min(found)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """The first row is the head; the first column is text, the others are numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    print()
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if not i else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))
    print(flush=True)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
