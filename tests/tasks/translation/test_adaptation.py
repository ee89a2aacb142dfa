"""Adapting a translator: the recipe's numbers, whole runs, stops, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from headwise.errors import CheckpointError, DataError, HeadwiseError, TrainingStopped, UsageError
from headwise.pocket import sentences
from headwise.tasks.events import Silence
from headwise.tasks.run import train
from headwise.tasks.translation.adaptation import adaptation_recipe
from headwise.tasks.translation.adaptation_report import REPORT, adapt
from headwise.tasks.translation.adaptation_request import AdaptationRequest
from headwise.tasks.translation.translator import Translator
from headwise.tasks.translation.translator_start import find_translator_start
from headwise.weights import read_tensors
from tests.promises.stopping import StopAtStep
from tests.tasks.tiny import tiny_recipe

PAIRS = 200
BRIEF = ("training.steps=6", "training.validate_every=3", "training.patience=null")


@pytest.fixture(name="own")
def _own(tmp_path: Path) -> str:
    """Sentences of the pocket corpus in another spelling of German."""
    folder = tmp_path / "my"
    folder.mkdir()
    spoken = list(sentences("train", 700))[500 : 500 + PAIRS]
    for code in ("en", "de"):
        lines = "".join(one.text(code).replace("der", "dr") + "\n" for one in spoken)
        (folder / f"train.{code}").write_text(lines, encoding="utf-8")
    return str(folder / "train")


def request_of(model: Path, own: str, run: Path, **changes: Any) -> AdaptationRequest:
    return AdaptationRequest(model=model, data=(own,), run=run, **changes)


def test_the_recipe_is_that_of_the_model_with_other_data(
    tiny_run: Path, own: str, tmp_path: Path
) -> None:
    general = ("pocket:train:300",)
    request = request_of(tiny_run, own, tmp_path / "run", general=general, own_share=0.25)
    recipe, base = adaptation_recipe(request), tiny_recipe()
    data, training = recipe.data, recipe.training
    held_out = [(one.split.part, one.split.valid, one.split.of) for one in
                (data.train[0], data.valid[0], data.test[0])]  # fmt: skip
    assert held_out == [("train", 100, 1000), ("valid", 100, 1000), ("test", 100, 1000)]
    # 160 own pairs are a quarter of what is seen, so 480 pairs of 300 general ones are seen.
    assert data.train[1].weight == pytest.approx(1.6)
    assert [one.kind for one in data.test] == ["files", "pocket"]
    assert data.test[1].split == "test"
    assert recipe.model.start_from == tiny_run / "model"
    assert recipe.text == base.text
    assert recipe.decoding == base.decoding
    assert training.schedule.kind == "linear"
    assert training.schedule.peak == pytest.approx(base.training.schedule.peak / 5)
    assert training.steps == 10 * training.validate_every
    assert training.schedule.warmup == training.steps // 10
    assert (training.batch_tokens, training.patience) == (512, 3)


def test_held_out_text_of_ones_own(tiny_run: Path, own: str, tmp_path: Path) -> None:
    named = {"valid": ("pocket:valid:5",), "test": ("pocket:test:7",)}
    recipe = adaptation_recipe(request_of(tiny_run, own, tmp_path / "run", **named))
    assert recipe.data.train[0].split is None
    assert [one.count for one in (*recipe.data.valid, *recipe.data.test)] == [5, 7]


def test_a_split_of_ones_own_is_kept(tiny_run: Path, own: str, tmp_path: Path) -> None:
    split = "split: {by: en, part: train, valid: 3, test: 2, of: 10}"
    general = (f"{{path: {own}, kind: files, {split}}}",)
    recipe = adaptation_recipe(request_of(tiny_run, own, tmp_path / "run", general=general))
    learnt, measured = recipe.data.train[1].split, recipe.data.test[1].split
    assert (learnt.part, learnt.valid, learnt.test, learnt.of) == ("train", 3, 2, 10)
    assert measured == learnt.model_copy(update={"part": "test"})


def test_a_whole_run(tiny_run: Path, own: str, tmp_path: Path) -> None:
    run, general = tmp_path / "run", ("pocket:train:300",)
    notes: list[str] = []

    class Notes(Silence):
        def note(self, text: str) -> None:
            notes.append(text)

    changes = (*BRIEF, "training.schedule.peak=0.003", "training.steps=40")
    request = request_of(tiny_run, own, run, general=general, overrides=changes)
    found = adapt(request, events=Notes())
    assert any("weights taken over" in note and "new" not in note for note in notes)
    own_gain, general_gain = found.gains
    assert own_gain.corpus == own
    assert (own_gain.sentences > 5, general_gain.sentences) == (True, 500)
    told = json.loads((run / REPORT).read_text(encoding="utf-8"))
    assert told == found.as_dict()["adaptation"]
    before, after = (read_tensors(one / "model/weights.safetensors") for one in (tiny_run, run))
    assert before.keys() == after.keys()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    # The scores of the base are those that it gets by itself.
    translator = Translator.load(tiny_run)
    assert found.gains[1].before == pytest.approx(
        _bleu(translator, [(one.text("en"), one.text("de")) for one in sentences("test", 500)])
    )
    log = (run / "log.jsonl").read_bytes()
    assert adapt(request).gains == found.gains, "a finished run stays as it is"
    assert (run / "log.jsonl").read_bytes() == log


def _bleu(translator: Translator, pairs: list[tuple[str, str]]) -> float:
    import sacrebleu

    found = [one.text for one in translator([source for source, _ in pairs])]
    return sacrebleu.corpus_bleu(found, [[target for _, target in pairs]]).score


def test_it_goes_on_after_a_stop_and_trains_the_same(
    tiny_run: Path, own: str, tmp_path: Path
) -> None:
    whole = adapt(request_of(tiny_run, own, tmp_path / "whole", overrides=BRIEF))

    request = request_of(
        tiny_run, own, tmp_path / "cut", overrides=(*BRIEF, "training.log_every=1")
    )
    with pytest.raises(TrainingStopped):
        adapt(request, events=StopAtStep(2))
    assert not (tmp_path / "cut/model").exists()
    found = adapt(request)
    assert found.gains == whole.gains
    first, second = (
        read_tensors(tmp_path / name / "model/weights.safetensors") for name in ("whole", "cut")
    )
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_frozen_weights_stay_and_lower_layers_learn_less(
    tiny_run: Path, own: str, tmp_path: Path
) -> None:
    changes = (*BRIEF, "training.freeze=['encoder.*']", "training.layer_decay=0.5")
    recipe = adaptation_recipe(request_of(tiny_run, own, tmp_path / "run", overrides=changes))
    train(recipe, run=tmp_path / "run")
    before = read_tensors(tiny_run / "model/weights.safetensors")
    after = read_tensors(tmp_path / "run/model/weights.safetensors")
    moved = {name: (after[name] - before[name]).abs().mean().item() for name in before}
    assert all((moved[name] == 0) == name.startswith("encoder.") for name in before)
    low, high = (f"decoder.{number}.feed_forward.widen.weight" for number in (0, 1))
    assert 0.3 < moved[low] / moved[high] < 0.7


@pytest.mark.parametrize(
    ("change", "new", "left_out"),
    [
        ("model.encoder.layers=2", "new, at random: encoder.1", None),
        ("model.decoder.layers=1", None, "left out: decoder.1"),
        ("model.output_bias=true", "new, at random: output.bias", None),
    ],
)
def test_a_partial_load_is_listed(
    change: str, new: str | None, left_out: str | None, tiny_run: Path, tmp_path: Path
) -> None:
    notes: list[str] = []

    class Notes(Silence):
        def note(self, text: str) -> None:
            notes.append(text)

    recipe = tiny_recipe(f"model.start_from={tiny_run}", change, "training.steps=1")
    train(recipe, run=tmp_path / "run", events=Notes())
    said = next(note for note in notes if "weights taken over" in note)
    for expected, word in ((new, "new"), (left_out, "left out")):
        assert (word in said.splitlines()[0]) == (expected is not None)
        assert expected is None or expected in said
    assert find_translator_start(recipe) is not None


REFUSED: dict[str, tuple[Callable[[str], dict[str, Any]], str]] = {
    "few": (lambda own: {"data": (f"{own}-few",)}, "has 3 pairs; at least 50"),
    "nothing there": (lambda own: {"data": (f"{own}-none",)}, "train-none"),
    "share": (lambda own: {"own_share": 0.0}, "above 0 and at most 1"),
    "valid alone": (lambda own: {"valid": (own,)}, "--valid and --test go together"),
    "key": (lambda own: {"overrides": ("training.stepz=3",)}, "stepz"),
    "vocabulary": (lambda own: {"overrides": ("text.size=400",)}, "another vocabulary"),
    "width": (lambda own: {"overrides": ("model.dim=24",)}, "another model"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_adapted(case: str, tiny_run: Path, own: str, tmp_path: Path) -> None:
    for code in ("en", "de"):
        Path(f"{own}-few.{code}").write_text("a b\nc d\ne f\n", encoding="utf-8")
    make, message = REFUSED[case]
    request = AdaptationRequest(
        **{"model": tiny_run, "data": (own,), "run": tmp_path / "run", **make(own)}
    )
    with pytest.raises(HeadwiseError, match=message) as caught:
        adapt(request)
    assert caught.value.exit_status in (2, 3)
    assert not (tmp_path / "run").exists()


def test_the_model_is_not_its_own_run(tiny_run: Path, own: str) -> None:
    for run in (tiny_run, tiny_run / "model"):
        with pytest.raises(UsageError, match="is the model that is adapted"):
            adaptation_recipe(request_of(tiny_run / "model", own, run))


def test_another_kind_of_model_is_refused(own: str, tmp_path: Path) -> None:
    changes = ("model={kind: recurrent, dim: 8}", "training.steps=1")
    train(tiny_recipe(*changes), run=tmp_path / "recurrent")
    with pytest.raises(UsageError, match=r"of model\.kind=recurrent; only encoder_decoder"):
        adaptation_recipe(request_of(tmp_path / "recurrent", own, tmp_path / "run"))


def test_a_run_that_lost_its_translations(tiny_run: Path, own: str, tmp_path: Path) -> None:
    from headwise.tasks.translation.adaptation_report import measure_gains

    request = request_of(tiny_run, own, tmp_path / "run", overrides=BRIEF)
    adapt(request)
    (tmp_path / "run/translations/test.de").write_text("eins\n", encoding="utf-8")
    with pytest.raises(CheckpointError, match="fewer than the test data"):
        measure_gains(adaptation_recipe(request), tmp_path / "run", Silence())


def test_an_empty_general_corpus(tiny_run: Path, own: str, tmp_path: Path) -> None:
    for code in ("en", "de"):
        Path(f"{own}-empty.{code}").write_text("", encoding="utf-8")
    request = request_of(tiny_run, own, tmp_path / "run", general=(f"{own}-empty",))
    with pytest.raises(DataError, match="is empty; a corpus needs at least one line"):
        adaptation_recipe(request)
