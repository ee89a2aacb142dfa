"""Where a model is: a bundle directory, or a run directory with a finished bundle inside.

Nothing here loads torch: a wrong directory is answered at once. What is in a bundle is read in `bundle.py`.
"""

from pathlib import Path

from headwise.errors import CheckpointError
from headwise.storage import MANIFEST
from headwise.training.run_standing import RunStanding, read_standing

FOLDER = "model"
"""Of the bundle inside a run directory."""


def find_bundle(path: Path, *, recipe: str | None = None) -> Path:
    """The bundle itself, or the bundle inside a run directory; `recipe` makes one of the kind that is asked for (None: the demo does)."""
    if (path / MANIFEST).is_file():
        return path
    if (path / FOLDER / MANIFEST).is_file():
        return path / FOLDER
    standing = read_standing(path)
    if standing is not None:
        raise _explain_unfinished(path, standing)
    example = "runs/demo/model" if recipe is None else f"runs/{recipe}"
    command = "headwise demo" if recipe is None else f"headwise train {recipe} --run {example}"
    raise CheckpointError(
        f"is not a model: a bundle has a MANIFEST.json; give e.g. {example} (`{command}` makes one), "
        "or see what is wrong with `headwise doctor DIR`",
        f"不是模型：模型目录应含 MANIFEST.json；请给出例如 {example}（`{command}` 会生成），"
        "或用 `headwise doctor DIR` 查看问题",
        file=path,
    )


def _explain_unfinished(path: Path, standing: RunStanding) -> CheckpointError:
    """Where the training of a run stands that has no model yet, and what can be done."""
    of = ("", "") if standing.steps is None else (f" of {standing.steps:,}", f"（共 {standing.steps:,} 步）")
    saved = (
        ("nothing is saved yet", "尚未保存任何内容")
        if standing.last is None
        else (f"step {standing.last:,}{of[0]} is saved", f"已保存到第 {standing.last:,} 步{of[1]}")
    )
    use_en, use_zh = "", ""
    if standing.task == "translation" and standing.last is not None:
        best = (
            ("", "")
            if standing.best is None
            else (f", or best (step {standing.best:,})", f"，或 best（第 {standing.best:,} 步）")
        )
        command = f"headwise translate --model {path} --checkpoint last"
        use_en, use_zh = f"; `{command}` uses it as it is{best[0]}", f"；可用 `{command}` 直接使用{best[1]}"
    go_on = f"headwise train --run {path} --resume"
    then = (
        ("a trainer is at work: wait for it", "训练正在进行：请等待其完成")
        if standing.is_training
        else (f"go on with `{go_on}`", f"继续训练：`{go_on}`")
    )
    return CheckpointError(
        f"training is not finished, so there is no model yet: {saved[0]}{use_en}; {then[0]}",
        f"训练尚未完成，还没有模型：{saved[1]}{use_zh}；{then[1]}",
        file=path,
    )


def require_run(path: Path) -> Path:
    """A directory to be examined."""
    if not path.is_dir():
        raise CheckpointError(
            "is not a directory; give a run directory such as runs/demo",
            "不是目录；请给出运行目录，例如 runs/demo",
            file=path,
        )
    return path
