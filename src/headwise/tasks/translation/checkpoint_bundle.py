"""Loads a translator from an unfinished run: recipe, tokenizers and the weights of a checkpoint.

    last        the newest complete checkpoint (its moving average, if the recipe keeps one)
    best        the weights of the best validation so far
    average:N   the mean of the weights of the N newest checkpoints; without N, of all

The run directory is only read, and the run may be training meanwhile. Other tasks use
tasks/checkpoint_bundle.py. Tested against: the weights in the checkpoint files.
"""

from pathlib import Path

from headwise.data.pairs.preparation import TOKENIZERS_KIND
from headwise.errors import UsageError
from headwise.models.choices import build_model
from headwise.settings import DEFAULT_TASK, check_settings
from headwise.storage import verify_directory
from headwise.tasks.bundle_directory import require_run
from headwise.tasks.checkpoint_bundle import Which, read_weights
from headwise.tasks.translation.bundle import TranslatorBundle
from headwise.tasks.translation.form import TRANSLATORS
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.text.tokenizer_pair import load_tokenizers
from headwise.training.run_recipe import FILE as RECIPE
from headwise.training.run_recipe import read_run_recipe
from headwise.weights import put_weights, weights_of


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
    TRANSLATORS.check(data.get("task", DEFAULT_TASK), path)
    recipe = check_settings(TranslationRecipe, data, file=path / RECIPE)
    verify_directory(path / "data" / "tokenizers", kind=TOKENIZERS_KIND)
    tokenizers = load_tokenizers(path / "data" / "tokenizers")
    found = read_weights(path, which)
    sizes = {"source_size": tokenizers.source.size, "target_size": tokenizers.target.size}
    model = build_model(recipe.model, generator=None, **sizes)
    put_weights(weights_of(model), found.weights, file=found.file)
    return TranslatorBundle(path, recipe, tokenizers, model.eval(), {"steps": found.step})
