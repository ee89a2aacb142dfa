"""Whose mistake it is: the recipe file's, or that of what was changed on the command line."""

from pathlib import Path

from tests.cli.conftest import Headwise


def test_a_mistake_is_looked_for_where_it_was_made(headwise: Headwise) -> None:
    Path("my.yaml").write_text(
        "task: translation\ndata: {source: en, target: de, train: t}\nmodel: {dimm: 8}\n",
        encoding="utf-8",
    )
    file = headwise("train", "my.yaml", "--run", "new").err
    assert (
        "headwise: error: my.yaml: 1 problem in the settings:\n  - model.dimm: unknown key" in file
    )
    both = headwise("train", "my.yaml", "training.stepz=3", "--run", "new").err
    assert (
        "headwise: error: my.yaml: 2 problems in the settings:\n  - model.dimm: unknown key" in both
    )
    assert "\n  - in the overrides: training.stepz: unknown key; did you mean 'steps'?" in both
    line = headwise("train", "pocket", "training.stepz=3", "--run", "new").err
    assert line.startswith(
        "headwise: error: overrides (key.path=value): 1 problem in the settings:\n  - "
        "training.stepz"
    )
    assert (
        "覆盖项（key.path=value）: 设置有 1 处问题"
        in headwise("--lang", "zh", "train", "pocket", "training.stepz=3", "--run", "new").err
    )
    task = headwise("train", "pocket", "task=cooking", "--run", "new").err
    assert "headwise: error: overrides (key.path=value): task: must be" in task
