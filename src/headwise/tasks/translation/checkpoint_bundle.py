"""Loads a translator from an unfinished run: recipe, tokenizers and the weights of a checkpoint.

    last   the newest complete checkpoint (its moving average, if the recipe keeps one)
    best   the weights of the best validation so far

The run directory is only read, and the run may be training meanwhile. Tested against: the weights
in the checkpoint files.
"""

from pathlib import Path
from typing import Literal

from headwise.data.pairs.preparation import TOKENIZERS_KIND
from headwise.errors import CheckpointError, UsageError
from headwise.models.choices import build_model
from headwise.settings import check_settings
from headwise.storage import verify_directory
from headwise.tasks.bundle import explain_task
from headwise.tasks.bundle_directory import require_run
from headwise.tasks.translation.bundle import TranslatorBundle
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.tokenizer_pair import load_tokenizers
from headwise.training.averaging import FILE
from headwise.training.averaging import KIND as SNAPSHOT
from headwise.training.checkpoints import KIND as CHECKPOINT
from headwise.training.run_recipe import FILE as RECIPE
from headwise.training.run_recipe import read_run_recipe
from headwise.training.run_status import saved_steps
from headwise.weights import load_weights

Which = Literal["best", "last"]


def load_checkpoint_bundle(directory: Path, which: Which) -> TranslatorBundle:
    """A translator with the weights that training has reached; its results are the step."""
    path = require_run(directory)
    if not (path / RECIPE).is_file() or not (path / "data").is_dir():
        raise UsageError(
            f"{path} is no run directory (recipe.yaml, data/, checkpoints/), which --checkpoint "
            f"{which} needs; give one such as runs/mine, or leave --checkpoint out",
            f"{path} 不是运行目录（recipe.yaml、data/、checkpoints/），而 --checkpoint {which} "
            "需要它；请给出例如 runs/mine，或去掉 --checkpoint",
        )
    data = dict(read_run_recipe(path / RECIPE))
    if data.get("task", "translation") != "translation":
        form = TranslationRecipe.bundle_form
        raise explain_task(data["task"], form.noun, path, example=form.example)
    recipe = check_settings(TranslationRecipe, data, file=path / RECIPE)
    verify_directory(path / "data" / "tokenizers", kind=TOKENIZERS_KIND)
    tokenizers = load_tokenizers(path / "data" / "tokenizers")
    step, file = _find_weights(path, which)
    sizes = {"source_size": tokenizers.source.size, "target_size": tokenizers.target.size}
    model = build_model(recipe.model, generator=None, **sizes)
    load_weights(model, file)
    return TranslatorBundle(path, recipe, tokenizers, model.eval(), {"steps": step})


def _find_weights(path: Path, which: Which) -> tuple[int, Path]:
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
