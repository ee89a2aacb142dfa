"""What the runs of a comparison share: it is checked and prepared once, before the first run
starts.

Devices, memory, files and text are checked once for all runs that have them in common, so an error
that every run would meet after a minute is reported once, before anything starts. Translators with
the same `data` and `text` then share the prepared data (data/pairs/shared_preparation.py). Labelled
text is small, and each run reads it by itself.

Tested with missing data, with variants that share data and that do not, and with a resumed
comparison.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from headwise.comparing.variants import Run
from headwise.data.pairs.preparation import PreparedData, describe_inputs
from headwise.data.pairs.shared_preparation import preparing_alone
from headwise.errors import DataError, HeadwiseError, UsageError
from headwise.language import say
from headwise.tasks.events import Events, Silence
from headwise.tasks.labels.recipe import LabelRecipe
from headwise.tasks.named_files import check_named_files
from headwise.tasks.run import check_before_start
from headwise.tasks.table import find_task
from headwise.tasks.translation.preflight import check_lengths
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.training.run_lock import lock_is_held

FOLDER = "prepared"


def prepare_runs(runs: Sequence[Run], *, directory: Path, events: Events) -> dict[str, Path]:
    """Check what the runs need and prepare what they share. Returns the directory of the data of
    each run, by its label.
    """
    variants = _first_of_each(runs, lambda run: run.variant)
    _check_all(variants, _check_settings)
    _check_all(_first_of_each(variants, _inputs_of), _check_data)
    return _share(
        [run for run in runs if isinstance(run.recipe, TranslationRecipe)],
        directory / FOLDER,
        events,
    )


def _share(runs: Sequence[Run], place: Path, events: Events) -> dict[str, Path]:
    """Prepare the data of all runs that have none yet. A run that another process is training
    prepares its own.
    """
    needing = [
        run
        for run in runs
        if not (run.directory / "data").exists() and not lock_is_held(run.directory)
    ]
    if not needing:
        return {}
    homes = {run.label: place / _name_of(run) for run in needing}

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
    prepared: list[PreparedData] = []

    def check(run: Run) -> None:
        assert isinstance(run.recipe, TranslationRecipe)
        if not prepared:
            prepared.append(find_task(run.recipe).prepare(run.recipe, home, events))
        check_lengths(run.recipe, prepared[0])

    _check_all(_first_of_each(sharing, lambda run: run.variant), check)


def _name_of(run: Run) -> str:
    assert isinstance(run.recipe, TranslationRecipe)
    return describe_inputs(run.recipe.data, run.recipe.text)[:16]


def _inputs_of(run: Run) -> str:
    """What variants with the same data have in common."""
    recipe = run.recipe
    start = recipe.model.start_from if isinstance(recipe, LabelRecipe) else None
    return f"{recipe.data.model_dump_json()} {recipe.text.model_dump_json()} {start}"


def _check_settings(run: Run) -> None:
    """Check a recipe against this machine."""
    check_before_start(find_task(run.recipe), run.recipe, 1, anyway=False)


def _check_data(run: Run) -> None:
    """Check that the files of all parts exist. Labelled files are read as well, since every run
    reads all of them.
    """
    if isinstance(run.recipe, LabelRecipe):
        find_task(run.recipe).prepare(run.recipe, Path(), Silence())
    else:
        check_named_files(run.recipe)


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
