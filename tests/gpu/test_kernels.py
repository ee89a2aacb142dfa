"""The kernels equal the torch functions they stand for; without a GPU, Triton interprets them."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECKS = {
    "tests.gpu.interpreted": 6,
    "tests.gpu.interpreted_ctc": 4,
    "tests.gpu.interpreted_graph": 4,
}
"""How many checks each program makes."""


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """What each program printed."""
    places = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": places}
    found = subprocess.run(
        [sys.executable, "-m", "tests.gpu.interpreting", *CHECKS],
        env=environment, cwd=ROOT, timeout=240, check=False, capture_output=True, text=True,
    )  # fmt: skip
    printed, rest = {}, found.stdout
    for name in CHECKS:
        printed[name], done, rest = rest.partition(f"{name} done\n")
        assert done, found.stdout + found.stderr[-2000:]
    return printed


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is there on Linux only"
)
@pytest.mark.parametrize("name", CHECKS)
def test_kernels_equal_torch(told: dict[str, str], name: str) -> None:
    assert f"{name} failed" not in told[name], told[name]
    assert told[name].count("check_") == CHECKS[name]
