"""Settings can be read and checked without importing torch, so that a mistake is answered
quickly.
"""

import subprocess
import sys

import pytest

MODULES = [
    "headwise.settings",
    "headwise.training.choices",
    "headwise.training.run_lock",
    "headwise.training.run_recipe",
    "headwise.training.run_status",
    "headwise.text.choices",
    "headwise.data.pairs.choices",
    "headwise.data.text.choices",
    "headwise.data.labels.choices",
]


def test_settings_do_not_import_torch() -> None:
    loaded = [
        f"import {module}; assert 'torch' not in sys.modules, '{module}'" for module in MODULES
    ]
    code = "; ".join(["import sys", *loaded])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        pytest.fail(done.stderr)
