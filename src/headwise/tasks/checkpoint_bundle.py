"""Writes a bundle from a checkpoint of an unfinished run, so that its model can be used already.

    last   the newest complete checkpoint (its moving average, if the recipe keeps one)
    best   the weights of the best validation so far

Tokenizers, classes and other parts come from the run's data, which are prepared again as by
`--resume`; data that have changed since are refused. The run directory is only read, and the run
may be training meanwhile. A translator keeps its tokenizers in the run and has its own reader
(translation/checkpoint_bundle.py). Tested against: the model of the finished run.
"""

from pathlib import Path
from typing import Literal

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
from headwise.training.averaging import FILE
from headwise.training.averaging import KIND as SNAPSHOT
from headwise.training.checkpoints import KIND as CHECKPOINT
from headwise.training.run_recipe import FILE as RECIPE
from headwise.training.run_status import saved_steps
from headwise.weights import Weights, read_tensors, weights_of

Which = Literal["best", "last"]


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
    step, file = find_weights(path, which)
    prepared = task.reopen(recipe, path / "data", Silence())
    module = task.build(recipe, prepared)
    share = Share(0, 1, training_of(recipe).accumulation)
    learner = task.learner(recipe, prepared, module, share=share, directory=path)
    _check_data(path, learner)
    _fill(weights_of(module), weights_of(learner.trainable.module), file)
    write_task_bundle(
        target, task, recipe, prepared, weights=task.weights(module), results={"steps": step}
    )
    return step, recipe


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


def _fill(weights: Weights, learnt: Weights, file: Path) -> None:
    """Copy the tensors of a checkpoint into a model. The trained module may wrap the model and keep
    states of its own, so that its names differ.
    """
    saved = read_tensors(file)
    names = {tensor.data_ptr(): name for name, tensor in learnt.items()}
    for name, tensor in weights.items():
        found = saved.get(names.get(tensor.data_ptr(), name))
        if found is None or found.shape != tensor.shape:
            raise CheckpointError(
                f"has no weights {name} of the model in the recipe; use another checkpoint",
                f"没有配方中模型的权重 {name}；请换用其他检查点",
                file=file,
            )
        tensor.data.copy_(found)


def find_weights(path: Path, which: Which) -> tuple[int, Path]:
    """The newest weights of this sort that are whole; damage is only an error if nothing is
    whole."""
    folder, kind = (
        (path / "best", SNAPSHOT) if which == "best" else (path / "checkpoints", CHECKPOINT)
    )
    damaged: CheckpointError | None = None
    for step in reversed(saved_steps(folder)):
        try:
            manifest = verify_directory(folder / f"step-{step}", kind=kind)
        except CheckpointError as error:
            damaged = damaged or error
            continue
        name = "ema.safetensors" if "ema.safetensors" in manifest["files"] else FILE
        return step, folder / f"step-{step}" / name
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
