"""R2: a translator interrupted anywhere and resumed ends as the undisturbed one: epochs,
accumulation, validation, prefetch.

Unlike a kill, an exception falls at a chosen place: before a given batch is learnt from, or inside
a given validation. The loop alone, with a module of a few numbers, is resumed at twenty more places
in tests/training/test_loop.py.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headwise.storage import sha256_of
from headwise.tasks.run import train
from headwise.tasks.translation import objective as translation
from headwise.tasks.translation import validation
from headwise.training.session import TIMINGS
from tests.tasks.tiny import tiny_recipe

STEPS = 36
COMMON = (
    f"training.steps={STEPS}",
    "training.checkpoint_every=5",
    "training.validate_every=6",
    "data.valid={kind: pocket, split: valid, count: 3}",
    "data.test=null",
)
VARIANTS = {
    "plain": (),
    "accumulation": ("training.accumulation=3", "training.steps=13", "training.checkpoint_every=2"),
    "ema": ("training.ema=0.9",),
    "snapshots": ("training.average={last: 3, every: 4}",),
}


class Interruption(Exception):
    pass


class Place:
    """Raises Interruption before the n-th batch is learnt from, or inside the n-th validation;
    counts both."""

    def __init__(self, *, batch: int | None = None, validation: int | None = None) -> None:
        self.batch, self.validation = batch, validation
        self.learnt = self.validated = self.made = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loss, evaluate, stream = (
            translation.TranslationLoss.loss,
            validation.validation_loss,
            translation.PackedPairs.stream,
        )

        def counted_loss(task: Any, batch: Any) -> Any:
            if task.module.training:
                self.learnt += 1
                if self.learnt == self.batch:
                    raise Interruption
            return loss(task, batch)

        def counted_validation(*arguments: Any) -> Any:
            self.validated += 1
            if self.validated == self.validation:
                raise Interruption
            return evaluate(*arguments)

        def counted_stream(pairs: Any, cursor: Any) -> Iterator[Any]:
            for item in stream(pairs, cursor):
                self.made += 1
                yield item

        monkeypatch.setattr(translation.TranslationLoss, "loss", counted_loss)
        monkeypatch.setattr(validation, "validation_loss", counted_validation)
        monkeypatch.setattr(translation.PackedPairs, "stream", counted_stream)


def untimed_log(run: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (run / "log.jsonl").read_text(encoding="utf-8").splitlines())
    return [{key: value for key, value in line.items() if key not in TIMINGS} for line in lines]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The run of a variant that nothing happened to."""
    directory, done = tmp_path_factory.mktemp("undisturbed"), set()

    def run_of(variant: str) -> Path:
        if variant not in done:
            train(tiny_recipe(*COMMON, *VARIANTS[variant]), run=directory / variant)
            done.add(variant)
        return directory / variant

    return run_of


def check_resumed(
    variant: str, place: Place, run: Path, undisturbed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = tiny_recipe(*COMMON, *VARIANTS[variant])
    with monkeypatch.context() as patch:
        place.install(patch)
        with pytest.raises(Interruption):
            train(recipe, run=run)
    train(recipe, run=run, resume=True)
    assert sha256_of(run / "model/weights.safetensors") == sha256_of(
        undisturbed / "model/weights.safetensors"
    )
    assert untimed_log(run) == untimed_log(undisturbed)


def test_inside_an_accumulation_in_the_third_epoch(
    undisturbed: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Place(batch=32)
    check_resumed("accumulation", place, tmp_path / "run", undisturbed("accumulation"), monkeypatch)
    epochs = {
        line["step"] * 3: line["epoch"]
        for line in untimed_log(tmp_path / "run")
        if line["kind"] == "train"
    }
    assert (epochs[6], epochs[18], epochs[30]) == (0, 1, 2), "of the batches so far"


def test_inside_a_validation_with_batches_prefetched(
    undisturbed: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was made ahead and never used is made again: the checkpoint remembers the last batch
    that was used."""
    place = Place(validation=2)
    check_resumed("ema", place, tmp_path / "run", undisturbed("ema"), monkeypatch)
    assert place.made > place.learnt == 12


@pytest.mark.prove
def test_thirty_places(
    undisturbed: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record: Callable[[str, str, str], None],
) -> None:
    places = [{"batch": batch} for batch in (2, 11, 13, 19, 25, 35)] + [
        {"validation": number} for number in (1, 2)
    ]
    for variant in VARIANTS:
        for number, place in enumerate(places):
            run = tmp_path / f"{variant}-{number}"
            check_resumed(variant, Place(**place), run, undisturbed(variant), monkeypatch)
    record(
        "R2",
        f"{len(VARIANTS) * len(places)} interruptions of a translator in epochs 0, 1 and 2, "
        f"inside accumulation, inside and after validation, with prefetch ({', '.join(VARIANTS)})",
        "SHA-256 of the weights and every line of the log equal",
    )
