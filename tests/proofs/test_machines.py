"""torchrun itself: two processes on one machine, and two "machines" that are network namespaces
joined by a cable."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tasks.tiny import OVERRIDES

ROOT = Path(__file__).resolve().parents[2]
LENGTH = [
    "training.steps=40",
    "training.checkpoint_every=10",
    "training.log_every=1",
    "training.validate_every=20",
]
TRAIN = [
    "-m",
    "--",
    "headwise",
    "train",
    "pocket",
    *OVERRIDES,
    *LENGTH,
    "data.test=null",
    "--resume",
    "--run",
]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    "OMP_NUM_THREADS": "1",
}
pytestmark = pytest.mark.prove


def torchrun(*words: str, before: tuple[str, ...] = (), **variables: str) -> subprocess.Popen[str]:
    command = [*before, sys.executable, "-m", "torch.distributed.run", *words]
    environment = {**ENVIRONMENT, **variables}
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run_whole(words: list[str], run: Path) -> None:
    process = torchrun(*words, str(run))
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said


def losses(run: Path) -> list[float]:
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [line["loss"] for line in map(json.loads, lines)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("alone") / "run"
    subprocess.run(
        [sys.executable, *TRAIN[:1], *TRAIN[2:], str(run)], env=ENVIRONMENT, check=True, timeout=300
    )
    return run


def weights(run: Path) -> bytes:
    return (run / "model/weights.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("count", "changes"), [(2, []), (4, []), (2, ["training.parallel.kind=sharded"])]
)
def test_torchrun_learns_what_one_process_learns(
    alone: Path, tmp_path: Path, count: int, changes: list[str]
) -> None:
    process = torchrun(f"--nproc-per-node={count}", *TRAIN, str(tmp_path / "run"), *changes)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert said.count("preparing the data") == 1, "only the first process talks"
    assert losses(tmp_path / "run") == pytest.approx(losses(alone), rel=1e-5)


def workers_of(process: subprocess.Popen[str]) -> dict[str, int]:
    """Process numbers by rank, read from the system."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            status = (path.parent / "stat").read_text().rpartition(")")[2].split()
            entries = dict(
                e.partition("=")[::2] for e in path.read_text(errors="replace").split("\0")
            )
        except OSError:
            continue
        if int(status[1]) == process.pid and "RANK" in entries:
            found[entries["RANK"]] = int(path.parent.name)
    return found


@pytest.mark.parametrize(
    ("number", "rank", "message"),
    [
        (signal.SIGKILL, "1", "is saved: start it again with --resume"),
        (signal.SIGKILL, "0", "was lost after step"),
        (signal.SIGTERM, "1", "saved, go on with --resume"),
        (signal.SIGTERM, None, "saved, go on with --resume"),
    ],
)
def test_a_run_that_is_disturbed_ends_soon_and_goes_on(
    tmp_path: Path, number: int, rank: str | None, message: str
) -> None:
    words = ["--nproc-per-node=2", *TRAIN]
    run_whole(words, tmp_path / "undisturbed")
    run = tmp_path / "run"
    process = torchrun(*words, str(run))
    deadline = time.monotonic() + 120
    while not (run / "LATEST").exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(process.pid if rank is None else workers_of(process)[rank], number)
    began = time.monotonic()
    said, _ = process.communicate(timeout=120)
    assert time.monotonic() - began < 60
    assert process.returncode != 0
    assert (
        said.count(
            f"headwise: error: {'another process' if number == signal.SIGKILL else 'stopped'}"
        )
        == 1
    ), said
    assert message in said
    run_whole(words, run)
    assert weights(run) == weights(tmp_path / "undisturbed")


def test_data_that_cannot_be_prepared_is_said_once(tmp_path: Path) -> None:
    process = torchrun("--nproc-per-node=2", *TRAIN, str(tmp_path / "run"), "data.train=none/such")
    said, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert said.count("headwise: error:") == 1, said
    assert "there is no such.en" in said
    assert "exitcode  : 3" in said.partition("Root Cause")[2], said
    assert list(tmp_path.iterdir()) == []


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@pytest.fixture
def machines() -> Iterator[tuple[tuple[str, str], ...]]:
    """(name, address) of two namespaces joined by a pair of virtual network cards; skipped where
    the system forbids them."""
    if shutil.which("ip") is None:
        pytest.skip("the command `ip` (iproute2) is not installed")
    names = tuple(f"headwise-{os.getpid()}-{number}" for number in (1, 2))
    cards = tuple(f"hw{os.getpid() % 10**6}{number}" for number in "ab")
    made = []
    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
        ip("link", "add", cards[0], "type", "veth", "peer", "name", cards[1])
        for number, (name, card) in enumerate(zip(names, cards, strict=True), start=1):
            ip("link", "set", card, "netns", name, "name", "cable")
            ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
            ip("-n", name, "link", "set", "lo", "up")
    except subprocess.CalledProcessError as error:
        for name in made:
            ip("netns", "delete", name)
        pytest.skip(f"this system forbids network namespaces: {error.stderr.strip()}")
    yield tuple((name, f"10.77.0.{number}") for number, name in enumerate(names, start=1))
    for name in names:
        ip("netns", "delete", name)


def start_machines(machines: Any, run: Path, *changes: str) -> list[subprocess.Popen[str]]:
    return [
        torchrun(
            "--nnodes=2",
            "--nproc-per-node=1",
            "--rdzv-backend=c10d",
            "--rdzv-id=test",
            f"--rdzv-endpoint={machines[0][1]}:29400",
            # found by the machine's name, which a namespace has not
            f"--rdzv-conf=is_host={str(number == 0).lower()}",
            f"--local-addr={address}",
            *TRAIN,
            str(run),
            *changes,
            before=("ip", "netns", "exec", name),
            GLOO_SOCKET_IFNAME="cable",
        )
        for number, (name, address) in enumerate(machines)
    ]


@pytest.mark.parametrize(
    "changes", [[], ["training.parallel.kind=sharded"]], ids=["replicated", "sharded"]
)
def test_two_machines_learn_what_one_learns(
    alone: Path, machines: Any, tmp_path: Path, changes: list[str]
) -> None:
    started = start_machines(machines, tmp_path / "run", *changes)
    said = [process.communicate(timeout=300)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], "\n".join(said)
    assert losses(tmp_path / "run") == pytest.approx(losses(alone), rel=1e-5)
