"""Reads and writes `recipe.yaml` of a run, and decides which settings a resumed run may change.

The last line of the file is a comment with the SHA-256 of the lines above it. So a flipped bit is
recognised as damage (exit status 3) and not taken for a change by the user. Editing the file by
hand is refused in the same way, because changes are given on the command line. Every checkpoint
holds a copy. A file without a checksum (an older run) is read as it is.

Tested with every single flipped bit of a small recipe, and with each kind of change.
"""

import hashlib
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from headwise.errors import CheckpointError, SettingsError, UsageError
from headwise.language import say
from headwise.settings import read_settings_file, write_yaml
from headwise.settings.added_kinds import PACKAGES, MissingPackageError
from headwise.storage import MANIFEST

logger = logging.getLogger(__name__)

FILE = "recipe.yaml"
# Without a colon: a flipped bit must not turn the line into a key.
_SEAL = "# damage to the lines above is noticed by their SHA-256 "

# What may differ between a run and its continuation: how long it goes on, what is shown and kept of
# it, how the end is measured. None of these touches an update of the weights.
FREE_TO_CHANGE = (
    "training.time_limit",
    "training.tensorboard",
    "training.log_every",
    "training.checkpoint_every",
    "training.keep.last",
    "training.recompute",
    "decoding",
    "data.test",
    "evaluation.validation_sentences",
)
# Changes only the rounding of sums, as environment.py reports.
LAYOUT = "training.parallel"
SCHEDULES_WITH_AN_END = ("cosine", "linear")

Complete = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Adds the settings that an older version did not have, so that only real differences remain."""


def sealed_recipe(recipe: Mapping[str, Any]) -> str:
    """The text of `recipe.yaml`."""
    text = write_yaml(dict(recipe))
    return f"{text}{_SEAL}{hashlib.sha256(text.encode()).hexdigest()}\n"


def is_sealed(path: Path) -> bool:
    """Whether a run wrote this file, intact or damaged; a recipe of the user has no checksum
    line.
    """
    return _SEAL.encode() in path.read_bytes()[-1024:]


def read_run_recipe(path: Path, complete: Complete | None = None) -> Mapping[str, Any]:
    """The recipe of a run; damage is a CheckpointError that says where a copy is."""
    try:
        recipe = read_settings_file(path)
        text = path.read_bytes().decode("utf-8")
    except MissingPackageError:
        raise  # the file is whole: what it needs is not installed
    except SettingsError as error:
        raise CheckpointError(
            f"is damaged ({error.en}); {where_a_copy_is(path)[0]}",
            f"已损坏（{error.zh}）；{where_a_copy_is(path)[1]}",
            file=path,
        ) from error
    body, seal, digest = text.rpartition(_SEAL)
    if seal and not re.fullmatch(f"{hashlib.sha256(body.encode()).hexdigest()}\\s*", digest):
        en, zh = where_a_copy_is(path)
        raise CheckpointError(
            "is not as it was written (its SHA-256 is another): a bit was flipped, or somebody "
            f"edited it; give changes as key.path=value on the command line; {en}",
            "与写入时不同（SHA-256 不符）：可能是位翻转，或被人修改过；改动请在命令行以 "
            f"key.path=value 给出；{zh}",
            file=path,
        )
    if complete is None:
        return recipe
    try:
        return complete(recipe)
    except SettingsError as error:
        raise CheckpointError(
            f"does not fit this version of headwise ({error.en}); go on with the version that "
            "wrote it",
            f"与此版本的 headwise 不符（{error.zh}）；请用写入它的版本继续",
            file=path,
        ) from error


def require_recipe(path: Path) -> None:
    """Refuse a run that has checkpoints but no recipe any more, and say where a copy is."""
    if not path.exists() and any(map(is_written, path.parent.glob("checkpoints/*"))):
        en, zh = where_a_copy_is(path)
        raise CheckpointError(
            f"is missing, resuming is not possible; {en}",
            f"缺失，无法恢复训练；{zh}",
            file=path,
        )


def is_written(folder: Path) -> bool:
    """Whether a run wrote this checkpoint, intact or damaged; a name alone does not tell."""
    return any((folder / name).is_file() for name in (MANIFEST, FILE, "state.json"))


def where_a_copy_is(path: Path) -> tuple[str, str]:
    copies = sorted(
        path.parent.glob(f"checkpoints/step-*/{FILE}"), key=lambda copy: copy.stat().st_mtime
    )
    if copies:
        return f"to mend it: cp {copies[-1]} {path}", f"恢复办法：cp {copies[-1]} {path}"
    if any(path.parent.glob("checkpoints/*")):
        return (
            "no checkpoint here has a copy: put one back, or start again in another directory",
            "此处的检查点都没有副本：请放回一份，或在别的目录重新开始",
        )
    return (
        "there is no checkpoint yet, so nothing is lost: start again in another directory",
        "尚无检查点，没有损失：请在别的目录重新开始",
    )


def check_recipe(old: Mapping[str, Any], new: Mapping[str, Any], *, file: Path) -> None:
    """Raise if the recipe would be a different training, listing all differences; warn about the
    others.
    """
    before, after = (
        flatten({key: value for key, value in one.items() if key != PACKAGES}) for one in (old, new)
    )
    refused: list[str] = []
    allowed: list[str] = []
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key, "(absent)"), after.get(key, "(absent)")
        if was != now and not key.startswith(LAYOUT):
            more_steps = (
                key == "training.steps"
                and isinstance(was, int)
                and isinstance(now, int)
                and now > was
            )
            # Training pairs that occur in the test set were left out; for another test set this was
            # not done.
            leaking = key.startswith("data.test") and bool(after.get("data.filter.drop_leaked"))
            # Scores of translations that choose the best weights are part of the training; scores
            # that are only reported are not.
            choosing = key.startswith("evaluation.") and after.get("training.keep.best") in (
                "bleu",
                "chrf",
            )
            free = more_steps or (key.startswith(FREE_TO_CHANGE) and not leaking and not choosing)
            (allowed if free else refused).append(f"  {key}: {was} → {now}")
    if refused:
        raise UsageError(
            "the recipe differs from the one this run began with:\n"
            + "\n".join(refused)
            + "\nthat would be another training; undo these changes or start a new run in "
            "another directory (only training.steps may be raised, and "
            f"{', '.join(FREE_TO_CHANGE)} changed)",
            "配方与本次运行开始时不同：\n"
            + "\n".join(refused)
            + "\n那将是另一次训练；请撤销这些改动，或在别的目录开始新的运行（只允许增大 "
            f"training.steps，或修改 {'、'.join(FREE_TO_CHANGE)}）",
            file=file,
        )
    if allowed:
        logger.warning(
            "%s",
            _describe_allowed(allowed, after, more_steps="training.steps:" in "".join(allowed)),
        )


def _describe_allowed(changes: list[str], after: Mapping[str, Any], *, more_steps: bool) -> str:
    listed = "\n".join(changes)
    kind = after.get("training.schedule.kind")
    if more_steps and kind in SCHEDULES_WITH_AN_END:
        return say(
            f"going on with a changed recipe:\n{listed}\nthe data and its order stay the same, "
            f"but the {kind} schedule ends with training.steps: from here on the learning rate is "
            "that of the longer run, so the result is not that of a run that was longer from the "
            "beginning",
            f"以修改过的配方继续：\n{listed}\n数据及其顺序不变，但 {kind} 学习率计划以 "
            "training.steps 为终点：从此处起采用更长运行的学习率，"
            "因此结果不同于一开始就训练这么久的运行",
        )
    return say(
        f"going on with a changed recipe:\n{listed}\nno update of the weights depends on it: up "
        "to the last step they are the same",
        f"以修改过的配方继续：\n{listed}\n权重的更新与此无关：到最后一步为止完全相同",
    )


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted keys."""
    children: Iterable[tuple[Any, Any]]
    if isinstance(value, Mapping):
        children = value.items()
    elif isinstance(value, list | tuple):
        children = enumerate(value)
    else:
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, child in children:
        flat.update(flatten(child, f"{prefix}.{key}" if prefix else str(key)))
    return flat
