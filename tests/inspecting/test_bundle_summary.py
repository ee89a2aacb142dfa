import shutil
from pathlib import Path

import pytest

from headwise.errors import CheckpointError
from headwise.inspecting.bundle_summary import summarize_bundle
from headwise.storage import write_manifest
from headwise.tasks.bundle_form import KIND


def test_a_task_of_another_version(tiny_run: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(tiny_run / "model", tmp_path / "model"))
    assert summarize_bundle(bundle) == "en → de"
    recipe = (bundle / "recipe.yaml").read_text(encoding="utf-8")
    (bundle / "recipe.yaml").write_text(
        recipe.replace("task: translation", "task: telepathy"), encoding="utf-8"
    )
    write_manifest(bundle, kind=KIND)
    with pytest.raises(
        CheckpointError,
        match=r"has task 'telepathy'; this version knows translation, .*: update headwise",
    ):
        summarize_bundle(bundle)
