"""Writes a bundle from a checkpoint of an unfinished run, so that its model can be used already.

    last        the newest complete checkpoint (its moving average, if the recipe keeps one)
    best        the weights of the best validation so far
    average:N   the mean of the weights of the N newest checkpoints; without N, of all

Tokenizers, classes and other parts come from the run's data, which are prepared again as by
`--resume`; data that have changed since are refused. The run directory is only read, and the run
may be training meanwhile. A translator keeps its tokenizers in the run and has its own reader
(translation/checkpoint_bundle.py). Tested against: the model of the finished run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from headwise.data.batching import Share
from headwise.errors import CheckpointError, UsageError
from headwise.storage import read_json, verify_directory
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.bundle_directory import require_run
from headwise.tasks.events import Silence
from headwise.tasks.recipe import load_recipe
from headwise.tasks.table import find_task
from headwise.tasks.task import Learner, TrainedTask, training_of
from headwise.tasks.task_bundle import write_task_bundle
from headwise.training.averaging import FILE, average_weights
from headwise.training.averaging import KIND as SNAPSHOT
from headwise.training.checkpoints import KIND as CHECKPOINT
from headwise.training.run_recipe import FILE as RECIPE
from headwise.training.run_status import saved_steps
from headwise.weights import Weights, read_tensors, weights_of

AVERAGE = "average"
Which = str
"""best, last, average or average:N."""


def write_checkpoint_bundle(directory: Path, which: Which, target: Path) -> tuple[int, AnyRecipe]:
    """Write the bundle into `target`, which must not exist; the step of its weights, and the
    recipe.
    """
    path = require_run(directory)
    if not (path / RECIPE).is_file():
        raise UsageError(
            f"{path} is no run directory (recipe.yaml, checkpoints/), which --checkpoint {which} "
            "needs; give one such as runs/mine, or leave --checkpoint out",
            f"{path} 不是运行目录（recipe.yaml、checkpoints/），而 --checkpoint {which} "
            "需要它；请给出例如 runs/mine，或去掉 --checkpoint",
        )
    recipe = load_recipe(path / RECIPE)
    task = find_task(recipe)
    if not isinstance(task, TrainedTask):
        raise UsageError(
            f"{path} holds a model that is made in one pass, without checkpoints; leave "
            "--checkpoint out and use the finished model",
            f"{path} 的模型一遍完成，没有检查点；请去掉 --checkpoint，使用完成的模型",
        )
    found = read_weights(path, which)
    prepared = task.reopen(recipe, path / "data", Silence())
    module = task.build(recipe, prepared)
    share = Share(0, 1, training_of(recipe).accumulation)
    learner = task.learner(recipe, prepared, module, share=share, directory=path)
    _check_data(path, learner)
    _fill(weights_of(module), weights_of(learner.trainable.module), found)
    write_task_bundle(
        target, task, recipe, prepared, weights=task.weights(module), results={"steps": found.step}
    )
    return found.step, recipe


def _check_data(path: Path, learner: Learner) -> None:
    """Refuse text that has changed since the run began: its vocabulary may be another."""
    steps = saved_steps(path / "checkpoints")
    state = path / "checkpoints" / f"step-{steps[-1]}" / "state.json" if steps else None
    if state is None or not state.is_file():
        return
    if read_json(state)["environment"]["fingerprint"] != learner.batches.fingerprint:
        raise CheckpointError(
            "was trained on other data than its recipe names now, so its vocabulary cannot be "
            "made again; restore the files of data.train",
            "训练所用的数据与其配方现在所指的不同，无法重建词表；请恢复 data.train 的文件",
            file=path,
        )


def _fill(weights: Weights, learnt: Weights, found: "SavedWeights") -> None:
    """Copy the tensors of a checkpoint into a model. The trained module may wrap the model and keep
    states of its own, so that its names differ.
    """
    saved = found.weights
    names = {tensor.data_ptr(): name for name, tensor in learnt.items()}
    for name, tensor in weights.items():
        here = saved.get(names.get(tensor.data_ptr(), name))
        if here is None or here.shape != tensor.shape:
            raise CheckpointError(
                f"has no weights {name} of the model in the recipe; use another checkpoint",
                f"没有配方中模型的权重 {name}；请换用其他检查点",
                file=found.file,
            )
        tensor.data.copy_(here)


@dataclass(frozen=True)
class SavedWeights:
    """Weights that training has saved."""

    step: int
    """Of the newest ones."""
    file: Path
    """Which holds the newest ones."""
    weights: Weights


def read_weights(path: Path, which: Which) -> SavedWeights:
    """The weights of a run that `which` names; damaged checkpoints are passed over, and damage is
    only an error if too few are whole.
    """
    word, _, count = which.partition(":")
    if word != AVERAGE:
        (step, file), *_ = _find_weights(path, which)
        return SavedWeights(step, file, read_tensors(file))
    wanted = int(count) if count else None
    newest = list(islice(_find_weights(path, "last"), wanted))
    if len(newest) < (wanted or 2):
        raise _explain_too_few(path, [step for step, _ in newest], which, wanted)
    # From the oldest to the newest, whose integer buffers are taken.
    weights = average_weights(read_tensors(file) for _, file in reversed(newest))
    return SavedWeights(*newest[0], weights)


def _find_weights(path: Path, which: Which) -> Iterator[tuple[int, Path]]:
    """Step and file of the weights of this sort that are whole, newest first; at least one."""
    folder, kind = (
        (path / "best", SNAPSHOT) if which == "best" else (path / "checkpoints", CHECKPOINT)
    )
    damaged: CheckpointError | None = None
    is_any = False
    for step in reversed(saved_steps(folder)):
        try:
            manifest = verify_directory(folder / f"step-{step}", kind=kind)
        except CheckpointError as error:
            damaged = damaged or error
            continue
        name = "ema.safetensors" if "ema.safetensors" in manifest["files"] else FILE
        is_any = True
        yield step, folder / f"step-{step}" / name
    if is_any:
        return
    if damaged is not None:
        raise damaged
    raise CheckpointError(
        f"has no {which} checkpoint yet; wait for the next one"
        + (
            ", or take --checkpoint last: without a validation there is no best"
            if which == "best"
            else ""
        ),
        f"还没有 {which} 检查点；请等待下一个"
        + ("，或使用 --checkpoint last：没有验证就没有 best" if which == "best" else ""),
        file=path,
    )


def _explain_too_few(
    path: Path, steps: Sequence[int], which: Which, wanted: int | None
) -> CheckpointError:
    """An average of more checkpoints than are there."""
    kept = ", ".join(f"{step:,}" for step in reversed(steps))
    here = ("", "")
    if len(steps) > 1:
        here = f"; take --checkpoint {AVERAGE}", f"；请用 --checkpoint {AVERAGE}"
    needed = wanted or 2
    return CheckpointError(
        f"keeps {len(steps)} whole checkpoints (step {kept}), and --checkpoint {which} averages "
        f"{needed}{here[0]}; a run that shall keep more is trained with "
        f"training.keep.last={needed}",
        f"保留了 {len(steps)} 个完好的检查点（第 {kept} 步），而 --checkpoint {which} 要平均 "
        f"{needed} 个{here[1]}；若要保留更多，训练时请设 training.keep.last={needed}",
        file=path,
    )
