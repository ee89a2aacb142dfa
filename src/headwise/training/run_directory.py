"""The directory of one training run; a run can be killed at any time and resumed bit-exactly.

    recipe.yaml           all settings, with a checksum      log.jsonl    one line an interval
    checkpoints/step-N/   the last two                       LATEST       name of the newest
    best/step-N/          weights of the best validation     snapshots/   weights to be averaged
    model/                the finished bundle                .lock        held by the trainer

Opening a run removes half-written directories and takes the lock. Resuming verifies the checkpoint
that LATEST names; if a file is damaged, the error names it, the directory is moved aside and the
checkpoint before it is used. Log and snapshots are cut back to the resumed step. Tested with kills,
bit flips, full disks and a second trainer.
"""

import logging
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headwise.errors import CheckpointError, UsageError
from headwise.language import say
from headwise.settings.added_kinds import PACKAGES
from headwise.storage import (
    INCOMPLETE,
    RETIRED,
    is_leftover,
    remove_directory,
    remove_leftovers,
    write_text,
)
from headwise.training.averaging import SnapshotFolder
from headwise.training.checkpoints import (
    Checkpoint,
    read_checkpoint,
    refusing_full_disk,
    write_checkpoint,
)
from headwise.training.log_file import LogFile
from headwise.training.orphaned_run import (
    LATEST,
    damaged_latest,
    describe_remains,
    newest_named,
    require_checkpoints,
)
from headwise.training.run_lock import release_lock, take_lock
from headwise.training.run_recipe import FILE as RECIPE
from headwise.training.run_recipe import (
    Complete,
    check_recipe,
    is_sealed,
    is_written,
    read_run_recipe,
    require_recipe,
    sealed_recipe,
)
from headwise.training.run_status import saved_steps

logger = logging.getLogger(__name__)

PREPARED = "prepared.json"
"""The file in `data/` that describes prepared data."""
WRITTEN = re.compile(
    r"recipe\.yaml|log\.jsonl|LATEST|(?:notes|adaptation)\.json|model|data"
    r"|(?:data|translations)/[^/]+|(?:checkpoints|best|snapshots)/step-\d+"
)
"""What a run writes under a temporary name first."""


class RunDirectory:
    """An open, locked run; use `with RunDirectory.open(...) as run`."""

    def __init__(self, path: Path, *, recipe: str, resumed: bool, lock: int | None) -> None:
        self.path, self.resumed, self._recipe, self._lock = path, resumed, recipe, lock
        self.is_updated = False
        """Whether a weight has been updated since the run was opened."""
        self.log = LogFile(path / "log.jsonl")
        self.snapshots = SnapshotFolder(path / "snapshots")
        self.best = SnapshotFolder(path / "best")

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        recipe: Mapping[str, Any],
        resume: bool = False,
        complete: Complete | None = None,
    ) -> "RunDirectory":
        """Start a run in an empty or new directory, or continue an existing one if `resume`.

        A run that ended before it saved anything cannot be continued: any recipe may start in its
        place.
        """
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        had_lock, held = (path / ".lock").exists(), (path / RECIPE).exists()
        lock = take_lock(path)
        try:
            check_directory(path, recipe, resume=resume, complete=complete)
            remove_leftovers(path, WRITTEN)
            sealed = sealed_recipe(recipe)
            write_text(path / RECIPE, sealed)
        except BaseException:
            # A directory that was refused, or not begun because of a signal, is left as it was
            # found.
            for name, was_there in ((".lock", had_lock), (RECIPE, held)):
                if not was_there:
                    (path / name).unlink(missing_ok=True)
            release_lock(lock)
            raise
        return cls(path, recipe=sealed, resumed=held, lock=lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.log.close()
        release_lock(self._lock)
        self._lock = None

    @property
    def model(self) -> Path:
        """Where the finished bundle goes."""
        return self.path / "model"

    def checkpoint(self, step: int) -> Path:
        return self.path / "checkpoints" / f"step-{step}"

    def steps(self) -> list[int]:
        """Steps with a checkpoint, oldest first."""
        return saved_steps(self.path / "checkpoints")

    def save(self, checkpoint: Checkpoint, *, keep: int, average: int = 0) -> None:
        """Publish a checkpoint, point LATEST to it, then delete what no kept checkpoint needs."""
        step = checkpoint.state.step
        self.log.sync()
        if step not in self.steps():
            write_checkpoint(self.checkpoint(step), checkpoint, recipe=self._recipe)
        with refusing_full_disk(self.path, needed=0):
            self._point_to(step)
        for old in self.steps()[:-keep]:
            remove_directory(self.checkpoint(old))
        kept = self.steps()
        self.best.keep_only(needed_steps(self.best.steps(), checkpoints=kept, last=1))
        self.snapshots.keep_only(
            needed_steps(self.snapshots.steps(), checkpoints=kept, last=average)
        )

    def _point_to(self, step: int) -> None:
        write_text(self.path / LATEST, f"step-{step}\n")

    def load(self) -> Checkpoint | None:
        """The newest intact checkpoint, with log and snapshots cut back to it; None if there is
        none.
        """
        candidates = sorted(self.steps(), reverse=True)
        latest = newest_named(self.path)
        if latest is not None and latest in candidates:
            candidates.remove(latest)
            candidates.insert(0, latest)
        problems: dict[int, CheckpointError] = {}
        found: Checkpoint | None = None
        for step in candidates:
            try:
                found = read_checkpoint(self.checkpoint(step))
                break
            except CheckpointError as error:
                problems[step] = error
        self._report(problems, found)
        if found is None:
            self._cut_back(0, logged=0, validated=0)
            return None
        if (misled := damaged_latest(self.path)) is not None:
            step = found.state.step
            logger.warning(
                "%s", say(f"{misled}; going on from step {step}", f"{misled}；从第 {step} 步继续")
            )
        state = found.state
        self._cut_back(state.step, logged=state.logged, validated=state.selection.step)
        if latest != state.step:
            self._point_to(state.step)
        return found

    def _report(self, problems: Mapping[int, CheckpointError], found: Checkpoint | None) -> None:
        if problems and found is None:
            listed = problems.values()
            en, zh = describe_remains(self.path)
            raise CheckpointError(
                "no checkpoint is usable:\n"
                + "\n".join(f"  - {one.file}: {one.en}" for one in listed)
                + f"\n{en}",
                "没有可用的检查点：\n"
                + "\n".join(f"  - {one.file}：{one.zh}" for one in listed)
                + f"\n{zh}",
                file=self.path / "checkpoints",
            )
        if found is None:
            return
        for number, problem in problems.items():
            step, aside = found.state.step, self._aside(number)
            kept = number > step
            logger.warning(
                say(
                    f"{problem}; going on from step {step}"
                    + (f"; the damaged one is kept as {aside} and may be removed" if kept else ""),
                    f"{problem}；从第 {step} 步继续"
                    + (f"；损坏的检查点改名为 {aside}，可以删除" if kept else ""),
                )
            )

    def _aside(self, step: int) -> Path:
        return self.checkpoint(step).with_suffix(".damaged")

    def _cut_back(self, step: int, *, logged: int, validated: int) -> None:
        """Remove what came after `step`. A later checkpoint is moved aside, not deleted."""
        for later in (late for late in self.steps() if late > step):
            aside = self._aside(later)
            shutil.rmtree(aside, ignore_errors=True)
            self.checkpoint(later).rename(aside)
        self.best.keep_only(kept for kept in self.best.steps() if kept <= validated)
        self.snapshots.keep_only(kept for kept in self.snapshots.steps() if kept <= step)
        self.log.cut_back(logged=logged, validated=validated)


def check_directory(
    path: Path, recipe: Mapping[str, Any], *, resume: bool, complete: Complete | None = None
) -> None:
    """Raise if a run cannot be started or continued here; nothing is changed."""
    require_recipe(path / RECIPE)
    held, begun = (path / RECIPE).exists(), has_learnt(path)
    if held and begun and not resume:
        raise UsageError(
            f"{path} holds a run already; add --resume to go on with it, or choose another "
            "directory",
            f"{path} 中已有一次运行；加 --resume 继续，或换一个目录",
        )
    if held and resume:
        require_checkpoints(path)
    if held and begun:
        check_recipe(read_run_recipe(path / RECIPE, complete), recipe, file=path / RECIPE)
    elif held and not is_sealed(path / RECIPE):
        raise UsageError(
            f"{path / RECIPE} was not written by a run and would be written over; choose a new or "
            "empty directory",
            f"{path / RECIPE} 不是运行写下的文件，会被覆盖；请选择新的或空的目录",
        )
    elif held:
        _say_begun_anew(path, recipe, complete, resume=resume)
    elif path.is_dir() and any(_is_foreign(child) for child in path.iterdir()):
        raise UsageError(
            f"{path} holds files that are not a run; choose a new or empty directory",
            f"{path} 中有不属于运行的文件；请选择新的或空的目录",
        )
    elif resume:
        logger.warning(
            "%s",
            say(
                f"nothing to resume in {path}: starting anew",
                f"{path} 中没有可继续的运行：重新开始",
            ),
        )


def _is_foreign(child: Path) -> bool:
    """Whether the directory contains something else; data may be prepared before a run begins."""
    ours = (
        child.name == ".lock"
        or is_leftover(child.name, WRITTEN)
        or (child.name == "data" and (child / PREPARED).is_file())
    )
    return not ours


def has_learnt(path: Path) -> bool:
    """Whether a run has left weights, intact or damaged; prepared data and logs can be made
    again. Without a recipe that a run has sealed, the names of folders are not enough.
    """
    left = [
        child
        for name in ("checkpoints", "best", "snapshots")
        for child in (path / name).glob("*")
        if not child.name.endswith((INCOMPLETE, RETIRED))
    ]
    if (path / RECIPE).is_file() and is_sealed(path / RECIPE):
        return bool(left) or any((path / "model").glob("*"))
    return any(map(is_written, (*left, path / "model")))


def _say_begun_anew(
    path: Path, recipe: Mapping[str, Any], complete: Complete | None, *, resume: bool
) -> None:
    given = {key: value for key, value in recipe.items() if key != PACKAGES}
    if resume and read_run_recipe(path / RECIPE, complete) == given:
        return
    logger.warning(
        "%s",
        say(
            f"{path} holds a run that ended before anything was saved: it begins anew, with the "
            "recipe given now",
            f"{path} 中的运行在保存任何内容之前就结束了：将以现在给出的配方重新开始",
        ),
    )


def needed_steps(steps: Iterable[int], *, checkpoints: Iterable[int], last: int) -> set[int]:
    """Of the steps in a folder, the `last` ones up to each checkpoint, and all after the newest."""
    ordered, checkpoints = sorted(steps), sorted(checkpoints)
    needed = {step for step in ordered if not checkpoints or step > checkpoints[-1]}
    for checkpoint in checkpoints:
        until = [step for step in ordered if step <= checkpoint]
        needed.update(
            until[len(until) - last :] if last and len(until) > last else until if last else []
        )
    return needed
