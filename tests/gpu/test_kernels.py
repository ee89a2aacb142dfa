"""The kernels equal the torch functions they stand for; without a GPU, Triton interprets them."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is there on Linux only"
)
def test_kernels_equal_torch() -> None:
    places = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": places}
    found = subprocess.run(
        [sys.executable, "-m", "tests.gpu.interpreted"],
        env=environment, cwd=ROOT, timeout=120, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.count("check_") == 6
