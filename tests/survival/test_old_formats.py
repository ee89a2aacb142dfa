"""R7: what was saved once loads for ever. tests/fixtures/format-1 holds a bundle and a run as
version 0.1.0 wrote them.

If one of these tests fails, the reader is wrong, not the files: their hashes are pinned here. What
a later version adds to a recipe or a checkpoint needs a default that means what the older one did.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from headwise.cli.main import main
from headwise.data.pairs.preparation import prepare_data
from headwise.models.choices import build_model
from headwise.storage import sha256_of
from headwise.tasks.recipe import complete_recipe, recipe_from
from headwise.tasks.translation.objective import PackedPairs, TranslationLoss
from headwise.tasks.translation.training_rows import row_shape
from headwise.tasks.translation.translator import Translator
from headwise.training.loop import train
from headwise.training.run_directory import RunDirectory
from headwise.training.run_recipe import read_run_recipe

FORMAT_1 = Path(__file__).parents[1] / "fixtures" / "format-1"
MANIFESTS = {
    "bundle": "1b44190d7be0414a160077fa71b292d4e85b1d9456e1e7adf2d484c586a16247",
    "run/checkpoints/step-6": "f38164b0c71db124211414581eb62a634f9765063a8c2287496675a311dd19b8",
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_files_are_those_that_were_saved(name: str) -> None:
    """The manifest holds the hash of every other file, and loading compares them."""
    assert sha256_of(FORMAT_1 / name / "MANIFEST.json") == MANIFESTS[name]


def test_a_bundle_of_format_1_translates_as_it_did(record: Callable[..., None]) -> None:
    lines = (FORMAT_1 / "translations.tsv").read_text(encoding="utf-8").splitlines()
    sources, expected = zip(*(line.split("\t") for line in lines), strict=True)
    assert len(sources) == 20
    translator = Translator.load(FORMAT_1 / "bundle", device="cpu")
    assert tuple(translation.text for translation in translator(sources)) == expected
    record(
        "R7",
        "a bundle and a run of format 1",
        "20 sentences translated to the same text; the run goes on",
    )


def test_a_run_of_format_1_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(FORMAT_1 / "run")]) == 0
    assert capsys.readouterr().out.count("every file as written") == 2


def test_a_run_of_format_1_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, optimiser, moving average, best validation, counters and cursor are taken up again.

    The recorded fingerprint stands in for that of the data, which is made anew here: whether
    another version of the pocket corpus is the same data is another question.
    """
    directory = Path(shutil.copytree(FORMAT_1 / "run", tmp_path / "run"))
    recipe = recipe_from(
        dict(read_run_recipe(directory / "recipe.yaml", complete_recipe)), ["training.steps=8"]
    )
    prepared = prepare_data(recipe.data, recipe.text, tmp_path / "data", seed=recipe.training.seed)
    sizes = {
        "source_size": prepared.tokenizers.source.size,
        "target_size": prepared.tokenizers.target.size,
    }
    task = TranslationLoss(build_model(recipe.model, generator=None, **sizes), label_smoothing=0.1)
    opened = RunDirectory.open(
        directory, recipe=recipe.model_dump(mode="json"), resume=True, complete=complete_recipe
    )
    with opened as run:
        found = run.load()
        assert found is not None
        assert (found.state.step, found.state.selection.best.step) == (6, 6)
        fingerprint = found.state.environment.fingerprint
        batches = PackedPairs(
            prepared.train, row_shape(recipe, prepared), recipe.training.seed, fingerprint
        )
        result = train(task, batches, recipe.training, run, evaluate=lambda step: {"loss": 9.0})
    assert (result.step, result.best.step, result.weights) == (8, 6, "ema")
    assert sorted(path.name for path in (directory / "checkpoints").iterdir()) == [
        "step-6",
        "step-8",
    ]
