"""Settings can be read and checked without importing torch, so that a mistake is answered quickly;
translators, language models and the server start without torch's compiler, which takes as long as
torch itself.
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
    "headwise.data.pairs.segmentation.choices",
    "headwise.data.text.choices",
    "headwise.data.labels.choices",
]


WITHOUT_COMPILER = [
    "headwise.tasks.translation.task",
    "headwise.tasks.language.task",
    "headwise.tasks.labels.task",
    "headwise.serving.app",
]


@pytest.mark.parametrize(
    ("modules", "heavy"), [(MODULES, "torch"), (WITHOUT_COMPILER, "torch._dynamo")]
)
def test_what_is_heavy_is_not_imported(modules: list[str], heavy: str) -> None:
    loaded = [
        f"import {module}; assert '{heavy}' not in sys.modules, '{module}'" for module in modules
    ]
    code = "; ".join(["import sys", *loaded])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        pytest.fail(done.stderr)
