"""ELMo from recipe to bundle: it learns to count both ways, resumes bit for bit, and is started
from."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from headwise.data.text.text_batches import pad_lines
from headwise.errors import CheckpointError, DataError, SettingsError
from headwise.inspecting.run_diagnosis import examine_run
from headwise.models.elmo import build_bidirectional
from headwise.randomness import torch_generator
from headwise.tasks.labels.labeller import Labeller
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.pretraining.elmo_objective import ElmoLoss, close_lines
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import check_run, train
from headwise.text.word_characters import BEGIN_WORD, END_WORD, letters_of
from headwise.weights import read_tensors
from tests.models.test_elmo import SETTINGS
from tests.tasks.labels.test_task import TRAINING, review_recipe, tag_recipe

MODEL = SETTINGS.model_dump(mode="json", exclude={"start_from"}) | {
    "dropout": {"residual": 0.0, "embedding": 0.0}
}
LINES = ["one two three four five six", "six five four three two one", "a word seen never before"]
TEXT = {"kind": "words", "size": 15}


def _recipe(folder: Path, *changes: str) -> Any:
    (folder / "text.txt").write_text("\n".join(LINES * 5) + "\n", encoding="utf-8")
    path = str(folder / "text.txt")
    training = TRAINING | {
        "keep": {"best": "loss"},
        "steps": 60,
        "batch_tokens": 128,
        "validate_every": 30,
    }
    recipe = {
        "task": "bidirectional_language",
        "data": {"language": "en", "train": path, "valid": path, "row_tokens": 16},
        "text": TEXT,
        "model": MODEL,
        "training": training | {"objective": {"label_smoothing": 0.0}},
    }
    return recipe_from(recipe, changes)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elmo")
    found = train(_recipe(folder), run=folder / "run").results
    # Seven or five words and an end: guessing among eleven known ones would give about 12.
    assert 1 < found["valid_forward_perplexity"] < 3
    assert 1 < found["valid_backward_perplexity"] < 3
    both = found["valid_forward_perplexity"] * found["valid_backward_perplexity"]
    assert found["valid_perplexity"] == pytest.approx(math.sqrt(both), rel=1e-4)
    sizes = check_run(_recipe(folder), directory=folder).results
    assert (sizes["lines"], sizes["tokens"], sizes["words"], sizes["vocabulary"]) == (
        15,
        85,
        11,
        15,
    )
    assert {"parameters", "expected_seconds", "expected_memory_mib"} <= set(sizes)
    return folder / "run"


@torch.no_grad()
def test_lines_are_closed_and_asked_for_from_both_sides() -> None:
    """The sums of a batch against each line by itself, written out; a word past the vocabulary is
    the unknown one."""
    batch = pad_lines([[4, 9, 5], [6]], first=1)
    whole, lengths = close_lines(batch)
    assert whole.tolist() == [[1, 4, 9, 5, 2], [1, 6, 2, 0, 0]]
    assert lengths.tolist() == [5, 3]
    model = (
        build_bidirectional(SETTINGS, vocabulary_size=7, generator=torch_generator("both"))
        .double()
        .eval()
    )
    letters = torch.tensor(
        [(0,) * len(BEGIN_WORD), BEGIN_WORD, END_WORD, *map(letters_of, "abcdefg")]
    )
    onward, backward = ElmoLoss(model, letters, 0.0).directions(batch)
    sums = [0.0, 0.0]
    for line in ([1, 4, 9, 5, 2], [1, 6, 2]):
        asked = [3 if token >= 7 else token for token in line]
        ahead, back = model(letters[line], torch.arange(len(line))[None], torch.tensor([len(line)]))
        for place in range(len(line) - 1):
            sums[0] -= float(model.output(ahead[0, place]).log_softmax(-1)[asked[place + 1]])
            sums[1] -= float(model.output(back[0, place + 1]).log_softmax(-1)[asked[place]])
    assert float(onward.loss) == pytest.approx(sums[0], rel=1e-6)
    assert float(backward.loss) == pytest.approx(sums[1], rel=1e-6)
    assert int(onward.num_tokens) == int(backward.num_tokens) == 6


def test_resumed_is_the_same_to_the_last_bit(pretrained: Path, tmp_path: Path) -> None:
    train(_recipe(tmp_path), run=tmp_path / "cut")
    for checkpoint in sorted((tmp_path / "cut" / "checkpoints").iterdir()):
        if checkpoint.name.endswith("60"):
            for file in checkpoint.iterdir():
                file.unlink()
    train(_recipe(tmp_path), run=tmp_path / "cut", resume=True)
    whole, cut = (
        read_tensors(run / "model" / "weights.safetensors")
        for run in (pretrained, tmp_path / "cut")
    )
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_a_classifier_and_a_tagger_start_from_it(pretrained: Path, tmp_path: Path) -> None:
    before = read_tensors(pretrained / "model" / "weights.safetensors")
    changes = [f"model={{{', '.join(f'{key}: {_plain(value)}' for key, value in MODEL.items())}}}"]
    changes += [
        f"model.start_from={pretrained}",
        "training.freeze=[encoder.reader.*]",
        "text.size=15",
    ]
    for number, make in enumerate((review_recipe, tag_recipe)):
        folder = tmp_path / str(number)
        folder.mkdir()
        result = train(make(folder, *changes, "training.steps=60"), run=folder / "run").results
        after = read_tensors(folder / "run" / "model" / "weights.safetensors")
        frozen = [name for name in after if name.startswith("encoder.reader.")]
        assert len(frozen) > 20
        assert all(torch.equal(before[name], after[name]) for name in frozen)
        assert not torch.equal(
            after["encoder.mixture.layer_scores"], before["encoder.mixture.layer_scores"]
        )
        assert result["valid"]["accuracy"] > 0.7
        answer = Labeller.load(folder / "run")(["a word never seen"])[0]
        assert len(answer.labels) == (1 if number == 0 else 4)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).replace("'", "")


def test_other_commands_say_what_it_is(pretrained: Path) -> None:
    with pytest.raises(
        CheckpointError,
        match=r"an ELMo model.*two half sentences do not.*a language model is needed; use "
        r"`headwise senses`",
    ):
        LanguageModel.load(pretrained)
    with pytest.raises(CheckpointError, match="a classifier or tagger is needed"):
        Labeller.load(pretrained)
    assert all(finding.state != "damaged" for finding in examine_run(pretrained))


def test_what_cannot_be_learnt_from(pretrained: Path, tmp_path: Path) -> None:
    recipe = _recipe(tmp_path)
    (tmp_path / "text.txt").write_text("one\n", encoding="utf-8")
    with pytest.raises(DataError, match="fewer than two words"):
        train(recipe, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(SettingsError, match="validation measures loss, perplexity"):
        _recipe(tmp_path, "training.keep.best=accuracy")
    with pytest.raises(CheckpointError, match="another encoder"):
        train(
            _recipe(tmp_path, f"model.start_from={pretrained}", "model.hidden=13"),
            run=tmp_path / "run",
        )
    with pytest.raises(SettingsError, match="reads whole words"):
        review_recipe(tmp_path, "model={kind: elmo}", "text={kind: characters}")
