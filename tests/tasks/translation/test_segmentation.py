"""A run that cuts its sentences anew in each epoch: resumed and shared like any other, named where
its model is described, and refused where it has no meaning."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from headwise.data.batching import Share
from headwise.data.packing import NAMES, PackedBatch
from headwise.errors import SettingsError, TrainingStopped
from headwise.inspecting.description import describe_model
from headwise.tasks.events import Silence
from headwise.tasks.recipe import load_recipe
from headwise.tasks.run import train
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.task import TranslationTask
from headwise.tasks.translation.training_rows import batches_for, pairs_for, row_shape
from tests.promises.recipes import weights_of_run
from tests.promises.stopping import StopAtStep
from tests.tasks.tiny import tiny_recipe
from tests.training.several import finish, start

DROPOUT = "training.segmentation={kind: bpe_dropout, probability: 0.3}"
SAMPLING = (
    "text={kind: sentencepiece, algorithm: unigram, size: 300, byte_fallback: false, coverage: 1}",
    "training.segmentation={kind: unigram_sampling}",
)


def take(
    recipe: TranslationRecipe, prepared: object, share: Share, count: int
) -> list[PackedBatch]:
    found = batches_for(recipe, prepared, row_shape(recipe, prepared), share)  # type: ignore[arg-type]
    stream = found.stream(None)
    return [next(stream)[0] for _ in range(count)]


@pytest.mark.parametrize("words", [(DROPOUT,), SAMPLING])
def test_a_resumed_run_is_the_uninterrupted_one(words: tuple[str, ...], tmp_path: Path) -> None:
    recipe = tiny_recipe(*words, "training.steps=8", "training.batch_tokens=1024")
    train(recipe, run=tmp_path / "whole")
    with pytest.raises(TrainingStopped):
        train(recipe, run=tmp_path / "parts", events=StopAtStep(5))
    train(recipe, run=tmp_path / "parts", resume=True)
    assert weights_of_run(tmp_path / "parts") == weights_of_run(tmp_path / "whole")
    plain = tiny_recipe(
        *words, "training.steps=8", "training.batch_tokens=1024", "training.segmentation=null"
    )
    train(plain, run=tmp_path / "plain")
    assert weights_of_run(tmp_path / "plain") != weights_of_run(tmp_path / "whole")
    card = (tmp_path / "whole" / "model" / "README.md").read_text("utf-8")
    assert "Segmentation in training: " in card
    assert "Segmentation" not in (tmp_path / "plain/model/README.md").read_text("utf-8")


def test_another_process_sees_its_share_of_the_same_batches(tmp_path: Path) -> None:
    recipe, task = tiny_recipe(DROPOUT, "training.batch_tokens=1024"), TranslationTask()
    first = task.prepare(recipe, tmp_path, Silence())
    second = task.reopen(recipe, tmp_path, Silence())
    assert first.fingerprint == second.fingerprint
    assert "segmentation:" in first.fingerprint
    whole = take(recipe, first, Share(), 40)
    shares = [take(recipe, one, Share(n, 2), 40) for n, one in enumerate((first, second))]
    for batch, *parts in zip(whole, *shares, strict=True):
        for name in NAMES:
            both = torch.cat([getattr(part, name) for part in parts])
            assert torch.equal(both, getattr(batch, name))


def test_rows_have_room_and_evaluation_is_as_always(tmp_path: Path) -> None:
    words = (DROPOUT, "training.segmentation.sides=source")
    recipe, plain, task = tiny_recipe(*words), tiny_recipe(), TranslationTask()
    prepared = task.prepare(recipe, tmp_path, Silence())
    assert prepared.segmentation is not None
    without = replace(prepared, segmentation=None)
    shape, before = row_shape(recipe, prepared), row_shape(plain, without)
    growth = prepared.segmentation.growth
    assert growth["source"] > 1.1
    assert growth["target"] == 1
    assert shape.source == pytest.approx(growth["source"] * before.source, rel=0.08)
    assert (shape.rows, shape.target) == (before.rows, before.target)
    assert pairs_for(recipe, prepared.valid) is prepared.valid  # type: ignore[arg-type]
    assert task.shared_data(recipe) == task.shared_data(plain)
    assert task.count_tokens(recipe, prepared) == task.count_tokens(plain, without)
    assert "segmentation" not in without.fingerprint


def test_more_tokens_are_counted(tmp_path: Path) -> None:
    recipe, task = tiny_recipe(DROPOUT), TranslationTask()
    prepared = task.prepare(recipe, tmp_path, Silence())
    without = replace(prepared, segmentation=None)
    assert prepared.segmentation is not None
    grown = prepared.segmentation.growth["target"] * task.count_tokens(recipe, without)
    assert task.count_tokens(recipe, prepared) == pytest.approx(grown, abs=1)


def test_it_is_described() -> None:
    sampling = "training.segmentation={kind: unigram_sampling, alpha: 0.3}"
    rows = describe_model("pocket", [sampling]).tables()[0][2]
    assert ("segmentation in training", "unigram_sampling (alpha=0.3, sides=both)") in rows
    plain = describe_model("pocket").tables()[0][2]
    assert not any("segmentation" in row[0] for row in plain)


def test_two_processes_train_one_model(tmp_path: Path) -> None:
    """As torchrun starts them; their log is that of one process, apart from rounding."""
    recipe = tiny_recipe(DROPOUT, "training.batch_tokens=1024", "training.log_every=1")

    def work() -> int:
        train(recipe, run=tmp_path / "two")
        return 0

    assert finish(start(tmp_path / "work", 2, work=work)) == [0, 0]
    train(recipe, run=tmp_path / "one")
    one, two = (
        [
            json.loads(line)
            for line in (tmp_path / run / "log.jsonl").read_text().splitlines()
            if json.loads(line)["kind"] == "train"
        ]
        for run in ("one", "two")
    )
    assert [line["target_tokens"] for line in one] == [line["target_tokens"] for line in two]
    for first, second in zip(one, two, strict=True):
        assert first["loss"] == pytest.approx(second["loss"], rel=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("text={kind: words}", "model.embedding.tied=output"), "set text.kind=sentencepiece"),
        (("text={kind: characters}",), "set text.kind=sentencepiece"),
        (("text.algorithm=unigram",), "set training.segmentation.kind=unigram_sampling"),
    ],
)
def test_other_tokenizers_are_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load_recipe("pocket", [*words, DROPOUT])


def test_fertilities_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"word alignment of the best pieces"):
        load_recipe("multi30k-en-de-fertility", [DROPOUT])
