"""Finds the bundle that a path names: a bundle directory, or a run directory with a bundle inside.

Nothing here loads torch, so a wrong path is reported at once. `bundle.py` reads the files of the
bundle.
"""

import difflib
from pathlib import Path

from headwise.errors import CheckpointError, SettingsError
from headwise.storage import MANIFEST
from headwise.tasks.table import find_entry
from headwise.training.run_status import RunStatus, read_status

FOLDER = "model"
"""Of the bundle inside a run directory."""


def find_bundle(path: Path, *, recipe: str | None = None, takes_checkpoint: bool = False) -> Path:
    """The bundle itself, or the bundle inside a run directory.

    For what is none: `recipe` makes one of the kind that is asked for (None: the demo does);
    `takes_checkpoint` if the command that asks can use a run that is not finished.
    """
    if (path / MANIFEST).is_file():
        return path
    if (path / FOLDER / MANIFEST).is_file():
        return path / FOLDER
    run = _run_of(path)
    standing = read_status(run)
    if standing is not None:
        raise _explain_unfinished(run, standing, takes_checkpoint=takes_checkpoint)
    example = "runs/demo/model" if recipe is None else f"runs/{recipe}"
    command = "headwise demo" if recipe is None else f"headwise train {recipe} --run {example}"
    if not path.exists():
        raise _explain_missing(
            path,
            f"give e.g. {example} (`{command}` makes one)",
            f"请给出例如 {example}（`{command}` 会生成）",
        )
    raise CheckpointError(
        f"is not a model: a bundle has a MANIFEST.json; give e.g. {example} (`{command}` makes "
        "one), or see what is wrong with `headwise doctor DIR`",
        f"不是模型：模型目录应含 MANIFEST.json；请给出例如 {example}（`{command}` 会生成），"
        "或用 `headwise doctor DIR` 查看问题",
        file=path,
    )


def _run_of(path: Path) -> Path:
    """runs/mine for the runs/mine/model that a run has when it is finished; any other path is
    itself.
    """
    return path if path.name != FOLDER or path.exists() else path.parent


def is_place_of_model(path: Path) -> bool:
    """A directory, or where the model of a run will be: not the name of a recipe or the path of a
    text.
    """
    return path.is_dir() or read_status(_run_of(path)) is not None


def _explain_missing(path: Path, give_en: str, give_zh: str) -> CheckpointError:
    near = nearest_directory(path)
    hint = ("", "") if near is None else (f"did you mean {near}? ", f"是否想写 {near}？")
    return CheckpointError(
        f"does not exist; {hint[0]}{give_en}", f"不存在；{hint[1]}{give_zh}", file=path
    )


def nearest_directory(path: Path) -> Path | None:
    """The directory that is there and whose name is most like the first part of a path that is
    not."""
    missing = next(one for one in reversed((path, *path.parents)) if not one.exists())
    try:
        names = [one.name for one in missing.parent.iterdir() if one.is_dir()]
    except OSError:
        return None
    near = difflib.get_close_matches(missing.name, names, n=1)
    if not near:
        return None
    whole = missing.parent / near[0] / path.relative_to(missing)
    return whole if whole.is_dir() else missing.parent / near[0]


def _explain_unfinished(
    path: Path, standing: RunStatus, *, takes_checkpoint: bool
) -> CheckpointError:
    """Where the training of a run stands that has no model yet, and what can be done."""
    of = (
        ("", "")
        if standing.steps is None
        else (f" of {standing.steps:,}", f"（共 {standing.steps:,} 步）")
    )
    saved = (
        ("nothing is saved yet", "尚未保存任何内容")
        if standing.last is None
        else (f"step {standing.last:,}{of[0]} is saved", f"已保存到第 {standing.last:,} 步{of[1]}")
    )
    use = _use_of_checkpoint(path, standing, takes_checkpoint=takes_checkpoint)
    go_on = f"headwise train --run {path} --resume"
    then = (
        ("a trainer is at work: wait for it", "训练正在进行：请等待其完成")
        if standing.is_training
        else (f"go on with `{go_on}`", f"继续训练：`{go_on}`")
    )
    return CheckpointError(
        f"training is not finished, so there is no model yet: {saved[0]}; {then[0]}{use[0]}",
        f"训练尚未完成，还没有模型：{saved[1]}；{then[1]}{use[1]}",
        file=path,
    )


def _use_of_checkpoint(
    path: Path, standing: RunStatus, *, takes_checkpoint: bool
) -> tuple[str, str]:
    """What can be done with an unfinished model at once, by the command that asks or by the one
    that its task is for.
    """
    try:
        entry = find_entry(standing.task)
    except SettingsError:  # a broken package
        entry = None
    if entry is None or not entry.command or standing.last is None:
        return "", ""
    given = f"--model {path} --checkpoint last"
    if not takes_checkpoint:
        return (
            f"; this command needs a finished run; `headwise {entry.command}` can use what is "
            f"saved: {given}",
            f"；本命令需要已完成的运行；`headwise {entry.command}` 可以使用已保存的内容：{given}",
        )
    best = ("", "")
    if standing.best is not None:
        best = f", or best (step {standing.best:,})", f"，或 best（第 {standing.best:,} 步）"
    return f"; `{given}` uses it as it is{best[0]}", f"；可用 `{given}` 直接使用{best[1]}"


def require_run(path: Path) -> Path:
    """A directory to be examined; of a run without a model also under the name that its model will
    have.
    """
    run = _run_of(path)
    if run.is_dir():
        return run
    if not path.exists():
        raise _explain_missing(
            path, "give a run directory such as runs/demo", "请给出运行目录，例如 runs/demo"
        )
    raise CheckpointError(
        "is not a directory; give a run directory such as runs/demo",
        "不是目录；请给出运行目录，例如 runs/demo",
        file=path,
    )
