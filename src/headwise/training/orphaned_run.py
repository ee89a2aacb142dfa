"""Handles a run whose checkpoints are missing or damaged, and says what is left of it.

Training can continue only from a checkpoint. The best weights and the finished model may still be
there, and restarting in the same directory would overwrite them. So such a run is restarted only if
the user asks for it.
"""

import re
from pathlib import Path

from headwise.errors import CheckpointError, HeadwiseError
from headwise.storage import verify_directory
from headwise.training.averaging import KIND as SNAPSHOT
from headwise.training.log_file import read_log

LATEST = "LATEST"
BUNDLE = "bundle"
"""The manifest kind of a finished model, which a task writes."""


def newest_named(path: Path) -> int | None:
    """The step that LATEST names."""
    try:
        name = re.fullmatch(r"step-(\d+)\s*", (path / LATEST).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    return int(name[1]) if name else None


def damaged_latest(path: Path) -> CheckpointError | None:
    """Describe what is wrong with LATEST if it exists and names no existing checkpoint."""
    steps = {child.name for child in (path / "checkpoints").glob("step-*")}
    if not steps or not (path / LATEST).exists() or f"step-{newest_named(path)}" in steps:
        return None
    held = (path / LATEST).read_bytes()[:40].decode("utf-8", errors="replace").strip()
    return CheckpointError(
        f"is damaged or out of date (it holds {held!r}, the name of no checkpoint here)",
        f"已损坏或过时（其内容 {held!r} 不是此处任何检查点的名字）",
        file=path / LATEST,
    )


def whole_remains(path: Path) -> list[Path]:
    """The best weights and the model of a run, if all their files are intact."""
    candidates = [
        (child, SNAPSHOT) for child in sorted((path / "best").glob("step-*")) if child.suffix == ""
    ]
    return [
        child
        for child, kind in [*candidates, (path / "model", BUNDLE)]
        if _is_whole(child, kind=kind)
    ]


def _is_whole(path: Path, *, kind: str) -> bool:
    try:
        verify_directory(path, kind=kind)
    except (HeadwiseError, OSError):
        return False
    return True


def describe_remains(path: Path) -> tuple[str, str]:
    """What is intact and what to do, in English and Chinese."""
    left = [str(child.relative_to(path)) for child in whole_remains(path)]
    use = (
        f" (headwise translate --model {path / 'model'} uses it)",
        f"（headwise translate --model {path / 'model'} 可用）",
    )
    if "model" not in left:
        use = ("", "")
    listed = (
        f"whole is still {', '.join(left)}{use[0]}" if left else "nothing else of it is whole",
        f"仍完好的有 {'、'.join(left)}{use[1]}" if left else "其他内容也都不完整",
    )
    return (
        f"{listed[0]}; put back a copy of a checkpoint, or, to start anew on purpose, give "
        f"another --run or move this one away: mv {path} {path}-old",
        f"{listed[1]}；请放回检查点的副本；若有意重新开始，请换一个 --run，或把它移走：mv {path} "
        f"{path}-old",
    )


def require_checkpoints(path: Path) -> None:
    """Raise if a run that saved checkpoints has none."""
    if any((path / "checkpoints").glob("step-*")):
        return
    named, trained = newest_named(path), _trained_step(path)
    if named is None and trained is None:
        return
    en, zh = describe_remains(path)
    step = (f"LATEST names step {named}", f"LATEST 指向第 {named} 步")
    if named is None:
        step = (f"a model was trained here for {trained} steps", f"此处已训练出 {trained} 步的模型")
    raise CheckpointError(
        f"{step[0]}, but checkpoints/ is missing or empty, so there is nothing to go on from; {en}",
        f"{step[1]}，但 checkpoints/ 缺失或为空，无法继续；{zh}",
        file=path,
    )


def _trained_step(path: Path) -> int | None:
    """The last logged step of a run with a finished model.

    None if there is no model, or if it was learnt in a single pass (n-grams).
    """
    if not (path / "model").is_dir() or not (path / "log.jsonl").is_file():
        return None
    return max(
        (line["step"] for line in read_log(path / "log.jsonl") if line.get("kind") == "train"),
        default=None,
    )
