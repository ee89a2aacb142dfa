import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headwise.errors import CheckpointError, DataError, UsageError
from headwise.inspecting.run_diagnosis import examine_run
from headwise.language import use_language
from headwise.randomness import numpy_generator
from headwise.storage import MANIFEST
from headwise.tasks.labels.labeller import Labeller
from headwise.tasks.pretraining.contextual_vectors import load_word_reader
from headwise.tasks.pretraining.gap_filling import load_predictor
from headwise.tasks.run import train
from headwise.tasks.table import task_words
from headwise.tasks.translation.translator import Translator
from headwise.tasks.word_vectors.bundle import load_word_vectors
from headwise.training.run_lock import release_lock, take_lock
from tests.survival.damage import flip_bit
from tests.tasks.every_task import recipe_of, train_every_task

LOADERS: dict[str, Callable[[Path], object]] = {
    "translation": Translator.load,
    "language_modeling": load_predictor,
    "word_vectors": load_word_vectors,
    "classification": Labeller.load,
    "tagging": Labeller.load,
    "masked_language": load_predictor,
    "bidirectional_language": load_word_reader,
}
"""What the commands open a model of each task with."""


@pytest.fixture(name="run")
def _run(tiny_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_run, tmp_path / "run"))


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_links_in_a_circle_are_damage(tiny_run: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(tiny_run / "model", tmp_path / "model"))
    for name in ("weights.safetensors", "MANIFEST.json"):
        (bundle / name).unlink()
        (bundle / name).symlink_to(name)
        assert [finding.state for finding in examine_run(bundle)] == ["damaged"]


def test_a_healthy_run_has_only_good_findings(run: Path) -> None:
    findings = examine_run(run)
    assert {finding.state for finding in findings} == {"good"}
    topics = {Path(finding.topic).name for finding in findings}
    assert {"step-4", "step-6", "tokenizers", "train", "valid", "model"} <= topics


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        ("checkpoints/step-6/optimizer.safetensors", "resuming will use step-4"),
        ("data/train/source.tokens", "remove it and resume: the data is made again"),
        ("data/tokenizers/probes.json", "remove it and resume: the data is made again"),
        ("model/weights.safetensors", "is damaged"),
    ],
)
def test_a_flipped_bit_is_found_and_named(run: Path, file: str, hint: str) -> None:
    damage(run / file)
    damaged = [finding for finding in examine_run(run) if finding.state == "damaged"]
    assert len(damaged) == 1
    assert str(run / file) in damaged[0].text
    assert hint in damaged[0].text


def test_a_bundle_can_be_examined_by_itself(run: Path) -> None:
    assert [finding.text for finding in examine_run(run / "model")] == ["a whole bundle, en → de"]


def test_leftovers_and_a_trainer_at_work_are_noted(run: Path) -> None:
    (run / "checkpoints" / "step-8.incomplete").mkdir()
    lock = take_lock(run)
    texts = [finding.text for finding in examine_run(run) if finding.state == "note"]
    release_lock(lock)
    assert texts == [
        "a trainer is at work here",
        "left by an interrupted save; removed at the next start",
    ]


def test_a_model_that_was_moved_aside_is_not_called_unfinished(run: Path) -> None:
    (run / "model").rename(run / "model.replaced")
    about = [
        finding for finding in examine_run(run) if Path(finding.topic).name.startswith("model")
    ]
    assert [(Path(finding.topic).name, finding.state) for finding in about] == [
        ("model.replaced", "damaged")
    ]


def test_what_is_no_run(tmp_path: Path) -> None:
    assert [finding.text for finding in examine_run(tmp_path)] == ["holds no run"]
    with pytest.raises(
        CheckpointError, match="does not exist; give a run directory such as runs/demo"
    ):
        examine_run(tmp_path / "none")


def test_when_every_checkpoint_is_damaged_what_is_left_is_said(run: Path) -> None:
    for step in (4, 6):
        damage(run / f"checkpoints/step-{step}/optimizer.safetensors")
    *two, rest = [finding for finding in examine_run(run) if finding.state == "damaged"]
    assert len(two) == 2
    assert not [finding for finding in two if "resuming will use" in finding.text]
    assert (
        "no checkpoint is whole, resuming is not possible; whole is still best/step-" in rest.text
    )
    assert f"headwise translate --model {run / 'model'}" in rest.text
    assert f"mv {run} {run}-old" in rest.text
    use_language("zh")
    assert "没有完好的检查点，无法恢复；仍完好的有 best/step-" in str(examine_run(run))


def test_an_older_damaged_checkpoint_names_the_newer_whole_one(run: Path) -> None:
    damage(run / "checkpoints/step-4/optimizer.safetensors")
    (found,) = [finding for finding in examine_run(run) if finding.state == "damaged"]
    assert "resuming will use step-6" in found.text


def test_missing_checkpoints_are_damage(run: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    (found,) = [finding for finding in examine_run(run) if finding.state == "damaged"]
    assert "LATEST names step 6, but checkpoints/ is missing" in found.text
    (run / "LATEST").unlink()
    states = {Path(finding.topic).name: finding.state for finding in examine_run(run)}
    assert states["checkpoints"] == "note", "taken away on purpose, to keep the model alone"


@pytest.fixture(scope="module", name="every_run")
def _every_run(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A finished run of each task; not to be changed."""
    return train_every_task(tmp_path_factory.mktemp("tasks"), translation=tiny_run)


@pytest.mark.parametrize("task", task_words())
def test_a_healthy_run_of_every_task(task: str, every_run: dict[str, Path]) -> None:
    run = every_run[task]
    for place in (run, run / "model"):
        assert {finding.state for finding in examine_run(place)} == {"good"}
    for part in [*run.glob("checkpoints/*"), *run.glob("best/*"), *run.glob("data/*/")]:
        assert [finding.state for finding in examine_run(part)] == ["good"], (
            "also when it is given by itself"
        )
    what = examine_run(run / "model")[0].text
    names = {"translation": "en → de", "word_vectors": "word vectors"}
    assert what.startswith(f"a whole bundle, {names.get(task, task)}")


def is_damaged(run: Path) -> bool:
    return any(finding.state == "damaged" for finding in examine_run(run))


def objects(work: Callable[[], object], caplog: pytest.LogCaptureFixture) -> bool:
    """Whether it refuses because of damaged data, or goes on and warns."""
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        try:
            work()
        except DataError:
            return True
        except UsageError as error:  # word vectors are never resumed
            if "leave no checkpoint to go on from" not in str(error):
                raise
    return bool(caplog.records)


def check_flip(
    task: str, run: Path, file: Path, bit: int, caplog: pytest.LogCaptureFixture
) -> bool:
    """One flipped bit, looked at by the doctor, by what loads the model and by a resumed training;
    whether it mattered."""
    flip_bit(file, bit)
    said = is_damaged(run)
    refused = objects(lambda: LOADERS[task](run / "model"), caplog)
    resumed = refused or objects(
        lambda: train(recipe_of(task, run.parent), run=run, resume=True), caplog
    )
    assert said == (refused or resumed), (file, bit, caplog.text)
    return said


def loose_files(run: Path) -> list[Path]:
    """Files under no manifest."""
    return [
        file
        for file in sorted(run.rglob("*"))
        if file.is_file()
        and file.stat().st_size
        and not any((parent / MANIFEST).exists() for parent in file.parents)
    ]


def check_flips(
    task: str,
    every_run: dict[str, Path],
    tmp_path: Path,
    draw: Callable[[Path], list[Path]],
    num_bits: int,
    **log: Any,
) -> set[str]:
    """Names of the files of which some flipped bit mattered."""
    mattered = set()
    for name in [file.relative_to(every_run[task]) for file in draw(every_run[task])]:
        generator = numpy_generator("flips", task, str(name))
        for turn in range(num_bits):
            run = Path(shutil.copytree(every_run[task], tmp_path / f"{name.name}-{turn}" / task))
            bit = int(generator.integers(8 * (run / name).stat().st_size))
            if check_flip(task, run, run / name, bit, **log):
                mattered.add(name.as_posix())
            shutil.rmtree(run.parent)
    return mattered


def test_a_flipped_bit_in_a_file_under_no_manifest(
    every_run: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The doctor says damaged exactly if loading or resuming objects."""

    def read_again(run: Path) -> list[Path]:
        return [file for file in loose_files(run) if file.parent.name != "translations"]

    mattered = check_flips("translation", every_run, tmp_path, read_again, 1, caplog=caplog)
    assert mattered == {"recipe.yaml", "LATEST", "data/prepared.json"}, "not the log"


@pytest.mark.parametrize("task", task_words())
def test_a_flipped_bit_in_any_file_of_a_model(
    task: str, every_run: dict[str, Path], tmp_path: Path
) -> None:
    bundle = Path(shutil.copytree(every_run[task] / "model", tmp_path / "model"))
    files = [file for file in sorted(bundle.rglob("*")) if file.is_file()]
    assert MANIFEST in [file.name for file in files]
    for file in files:
        bit = int(numpy_generator("flip", task, file.name).integers(8 * file.stat().st_size))
        flip_bit(file, bit)
        (found,) = examine_run(bundle)
        assert found.state == "damaged", (file, bit)
        assert str(file) in found.text
        with pytest.raises(CheckpointError, match=r"damaged|has .* bytes") as caught:
            LOADERS[task](bundle)
        assert str(caught.value) == found.text, "the same file is named in the same words"
        flip_bit(file, bit)


@pytest.mark.prove
@pytest.mark.parametrize("task", task_words())
def test_flipped_bits_in_every_file_of_a_run(
    task: str, every_run: dict[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def every_file(run: Path) -> list[Path]:
        return [file for file in sorted(run.rglob("*")) if file.is_file() and file.stat().st_size]

    check_flips(task, every_run, tmp_path, every_file, 3, caplog=caplog)
