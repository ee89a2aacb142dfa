"""Checks and prepares what the runs of a comparison share, before the first run starts.

Devices, memory, files and text are checked once for all runs. So an error that every run would meet
after a minute is reported once, before anything starts. Each task says which runs can share
prepared data (`Task.shared_data`). Translators with the same `data` and `text` do
(data/pairs/shared_preparation.py); runs of other tasks each read their text by themselves.

Tested with missing data, with variants that share data and that do not, and with a resumed
comparison.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from headwise.comparing.variants import Run
from headwise.data.pairs.shared_preparation import preparing_alone
from headwise.errors import DataError, HeadwiseError, UsageError
from headwise.language import say
from headwise.tasks.events import Events
from headwise.tasks.named_files import check_named_files
from headwise.tasks.preflight import check_before_start
from headwise.tasks.table import find_task
from headwise.tasks.task import TrainedTask
from headwise.training.run_lock import lock_is_held

FOLDER = "prepared"


def prepare_runs(runs: Sequence[Run], *, directory: Path, events: Events) -> dict[str, Path]:
    """Check what the runs need and prepare what they share. Returns the directory of the data of
    each run, by its label.
    """
    variants = _first_of_each(runs, lambda run: run.variant)
    _check_all(variants, _check_settings)
    _check_all(_first_of_each(variants, _inputs_of), _check_data)
    names = {run.label: find_task(run.recipe).shared_data(run.recipe) for run in runs}
    sharing = {label: name for label, name in names.items() if name is not None}
    return _share(runs, sharing, directory / FOLDER, events)


def _share(
    runs: Sequence[Run], names: Mapping[str, str], place: Path, events: Events
) -> dict[str, Path]:
    """Prepare the data of all runs that have none yet. A run that another process is training
    prepares its own.
    """
    needing = [
        run
        for run in runs
        if run.label in names
        and not (run.directory / "data").exists()
        and not lock_is_held(run.directory)
    ]
    if not needing:
        return {}
    homes = {run.label: place / names[run.label] for run in needing}

    def tell() -> None:
        events.note(
            say(
                f"another comparison prepares data in {place}; waiting for it",
                f"另一个比较正在 {place} 中准备数据；正在等待",
            )
        )

    with preparing_alone(place, tell):
        for home in dict.fromkeys(homes.values()):
            _prepare([run for run in needing if homes[run.label] == home], home, events)
    return homes


def _prepare(sharing: Sequence[Run], home: Path, events: Events) -> None:
    events.note(
        say(
            f"the data of {len(sharing)} run(s) is prepared once, in {home}",
            f"{len(sharing)} 次运行的数据只准备一次，存于 {home}",
        )
    )
    prepared: list[Any] = []

    def check(run: Run) -> None:
        task = find_task(run.recipe)
        if not prepared:
            prepared.append(task.prepare(run.recipe, home, events))
        task.check_prepared(run.recipe, prepared[0])

    _check_all(_first_of_each(sharing, lambda run: run.variant), check)


def _inputs_of(run: Run) -> str:
    """What variants with the same data have in common."""
    recipe = run.recipe
    start = getattr(getattr(recipe, "model", None), "start_from", None)
    taken = getattr(recipe, "tokenizer", None)
    text = f"{getattr(recipe, 'text', None)!r} {taken}"
    return f"{recipe.task} {recipe.corpora_settings!r} {text} {start}"


def _check_settings(run: Run) -> None:
    """Check a recipe against this machine."""
    task = find_task(run.recipe)
    if isinstance(task, TrainedTask):
        check_before_start(task, run.recipe, 1, anyway=False)
    else:
        check_named_files(run.recipe)


def _check_data(run: Run) -> None:
    """Check that the files of all parts exist; what else is checked, the task says."""
    find_task(run.recipe).check_data(run.recipe)


def _check_all(variants: Sequence[Run], check: Callable[[Run], None]) -> None:
    """The errors of all runs together; an error that all runs have is reported once, without their
    names.
    """
    found: list[tuple[Run, HeadwiseError]] = []
    for run in variants:
        try:
            check(run)
        except HeadwiseError as error:
            found.append((run, error))
    if not found:
        return
    first = found[0][1]
    if len(found) == len(variants) and len({str(error) for _, error in found}) == 1:
        raise first
    kind = DataError if all(isinstance(error, DataError) for _, error in found) else UsageError
    raise kind(
        "\n".join(f"variant {run.variant}: {_place(error)}{error.en}" for run, error in found),
        "\n".join(f"变体 {run.variant}：{_place(error)}{error.zh}" for run, error in found),
    ) from first


def _place(error: HeadwiseError) -> str:
    line = "" if error.line is None else f":{error.line}"
    return "" if error.file is None else f"{error.file}{line}: "


def _first_of_each(runs: Iterable[Run], key: Callable[[Run], str]) -> list[Run]:
    found: dict[str, Run] = {}
    for run in runs:
        found.setdefault(key(run), run)
    return list(found.values())
