"""The task of a bundle, and `AcceptedModels`: which bundles a command or a function can use.

A bundle of another task is refused with one sentence: what it is, why it cannot answer, what is
needed, and the command that uses it. The folder of each task says in `form.py` which models it
accepts. The options of the command line (cli/options/paths.py) and the functions that load a model
read it there, so that a wrong model is refused with the same sentence by both, and by the command
line before anything else is looked for. Nothing here loads torch.

Tested: every command with a model of every task (tests/cli/options/test_model_paths.py), and damage
that could be taken for another task (tests/tasks/test_bundle.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwise.errors import CheckpointError, UsageError
from headwise.settings import DEFAULT_TASK, read_settings_file
from headwise.settings.kind import Words
from headwise.storage import MANIFEST, read_manifest, verify_directory, verify_listed
from headwise.tasks.bundle_directory import find_bundle
from headwise.tasks.bundle_form import KIND, RECIPE, WORD_VECTORS, BundleForm
from headwise.tasks.table import find_entry


@dataclass(frozen=True)
class AcceptedModels:
    """The bundles that can answer a question."""

    forms: tuple[BundleForm, ...]
    """A bundle must have one of these forms."""
    noun: Words
    """What is needed (with its article in English)."""
    example: str
    """A shipped recipe that makes one."""
    is_demo: bool = False
    """Whether `headwise demo` makes one."""
    why: Mapping[str, Words] = field(default_factory=dict)
    """Why models of some other tasks cannot answer, by the word of the task."""
    why_others: Words = ("", "")
    """The same for all other tasks."""

    @staticmethod
    def of(form: BundleForm, why: Mapping[str, Words] | None = None) -> "AcceptedModels":
        """Those of one form."""
        return AcceptedModels((form,), form.noun, form.example, form.is_demo, why or {})

    def find(self, path: Path, *, takes_checkpoint: bool = False) -> Path:
        """The bundle that a path names (bundle_directory.py), after checking its task."""
        recipe = None if self.is_demo else self.example
        found = find_bundle(path, recipe=recipe, takes_checkpoint=takes_checkpoint)
        self.check(task_of_bundle(found), found)
        return found

    def check(self, task: Any, path: Path) -> None:
        """Refuse a bundle or run of another task."""
        entry = find_entry(task)
        if entry is None or entry.form not in self.forms:
            raise self.explain(task, path)

    def explain(self, task: Any, path: Path) -> CheckpointError:
        """Why a model of this task is not accepted."""
        why = self.why.get(str(task), self.why_others)
        return explain_task(task, self.noun, path, example=self.example, why=why)


def task_of_bundle(path: Path) -> Any:
    """The task of a bundle.

    The recipe is compared with the manifest first, so that damage is not taken for another task.
    """
    manifest = read_manifest(path)
    if manifest["kind"] == WORD_VECTORS:
        return "word_vectors"
    if manifest["kind"] != KIND:
        verify_directory(path, kind=KIND)  # refuses it and says what it is
    check_listed(manifest, path, (RECIPE,))
    verify_listed(path, manifest, RECIPE)
    return read_settings_file(path / RECIPE).get("task", DEFAULT_TASK)


def explain_task(
    word: Any,
    noun: Words,
    path: Path,
    *,
    example: str,
    why: Words = ("", ""),
) -> CheckpointError:
    """A bundle of another task than the command is for; `why` it cannot answer, in both
    languages."""
    entry = find_entry(word)
    found = f"a model of task {str(word)[:80]!r}", f"任务 {str(word)[:80]!r} 的模型"
    use = ("", "请")
    if entry is not None:
        found = entry.form.noun
        if entry.command:
            use = (
                f"use `headwise {entry.command}` with this one, or ",
                f"该模型请用 `headwise {entry.command}`，或",
            )
    train = f"headwise train {example} --run runs/{example}"
    reason = f" ({why[0]})" if why[0] else "", f"（{why[1]}）" if why[1] else ""
    return CheckpointError(
        f"is {found[0]}{reason[0]}, {noun[0]} is needed; {use[0]}train one, e.g. `{train}`",
        f"是{found[1]}{reason[1]}，需要{noun[1]}；{use[1]}训练一个，例如 `{train}`",
        file=path,
    )


def check_command(task: str, path: Path | str, *, command: str) -> None:
    """Refuse a model for the other one of two commands whose models have the same form."""
    entry = find_entry(task)
    if entry is not None and entry.command != command:
        raise UsageError(
            f"{path} is made for task={task}; use `headwise {entry.command}` with it",
            f"{path} 的任务是 {task}；请用 `headwise {entry.command}`",
        )


def check_listed(manifest: Mapping[str, Any], path: Path, required: tuple[str, ...]) -> None:
    """A manifest may be whole and yet not that of a model."""
    for name in required:
        if name not in manifest["files"]:
            raise CheckpointError(
                f"does not list {name}, without which there is no model; "
                "use another copy of the bundle",
                f"没有列出 {name}，缺少它就不成其为模型；请换用其他副本",
                file=path / MANIFEST,
            )
