"""Pre-training by hidden words, and starting from it."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.data.labels.labelled_rows import RowBatch
from headwise.data.text.choices import MaskingSettings
from headwise.data.text.masking import MASK, mask_rows
from headwise.errors import CheckpointError, DataError, SettingsError, UsageError
from headwise.randomness import numpy_generator
from headwise.settings import read_settings_file
from headwise.storage import read_json, write_manifest
from headwise.tasks.bundle_form import KIND
from headwise.tasks.labels.labeller import Labeller
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.pretraining.gap_filling import GapFiller, load_predictor
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import check_run, train
from headwise.text.word_boundaries import WordBounds
from headwise.weights import read_tensors
from tests.tasks.labels.test_task import BAD, GOOD, MODEL, TRAINING, review_recipe

COUNTING = ["one two three four five six seven"] * 30


def _rows(tokens: torch.Tensor) -> RowBatch:
    return RowBatch(
        tokens, torch.ones_like(tokens), torch.zeros_like(tokens), torch.zeros_like(tokens)
    )


def _every_token(size: int) -> WordBounds:
    return WordBounds(np.ones(size, bool), np.ones(size, bool))


def test_the_shares_of_what_is_hidden() -> None:
    tokens = torch.from_numpy(np.random.default_rng(1).integers(4, 1009, size=(101, 103)))
    tokens[:, 0] = 1
    generator = numpy_generator("mask")
    masked = mask_rows(
        _rows(tokens), MaskingSettings(), bounds=_every_token(1009), generator=generator
    )
    asked = masked.targets != 0
    places = masked.places[asked]
    assert torch.equal(tokens.flatten()[places], masked.targets[asked])
    shown = masked.rows.tokens.flatten()[places]
    assert asked.sum() / (tokens > 3).sum() == pytest.approx(0.15, abs=0.02)
    assert (shown == MASK).float().mean() == pytest.approx(0.8, abs=0.05)
    assert (shown == masked.targets[asked]).float().mean() == pytest.approx(0.1, abs=0.04)
    untouched = torch.ones(tokens.numel(), dtype=torch.bool)
    untouched[places] = False
    assert torch.equal(masked.rows.tokens.flatten()[untouched], tokens.flatten()[untouched])
    again = mask_rows(
        _rows(tokens),
        MaskingSettings(),
        bounds=_every_token(1009),
        generator=numpy_generator("mask"),
    )
    assert torch.equal(again.rows.tokens, masked.rows.tokens)


def test_whole_words_or_none() -> None:
    tokens = torch.tensor([[1, 4, 5, 5, 4, 5, 4, 5, 5, 5, 0, 0]] * 29)
    bounds = WordBounds.of(["<pad>", "<s>", "</s>", "<unk>", "▁word", "piece"])
    settings = MaskingSettings(rate=0.4, whole_words=True)
    masked = mask_rows(_rows(tokens), settings, bounds=bounds, generator=numpy_generator("words"))
    asked = torch.zeros(tokens.numel(), dtype=torch.bool)
    asked[masked.places[masked.targets != 0]] = True
    for row in asked.reshape(tokens.shape):
        for word in (slice(1, 4), slice(4, 6), slice(6, 10)):
            assert row[word].all() or not row[word].any()


def test_a_word_is_not_cut_where_room_ends() -> None:
    """Rows of one long word; there is room for three of them, and the draw often asks for more."""
    tokens = torch.tensor([[1, 4, *[5] * 34]] * 7)
    bounds = WordBounds.of(["<pad>", "<s>", "</s>", "<unk>", "▁word", "piece"])
    settings = MaskingSettings(rate=0.3, whole_words=True)
    counts = []
    for seed in range(53):
        masked = mask_rows(
            _rows(tokens), settings, bounds=bounds, generator=numpy_generator("cut", seed)
        )
        asked = torch.zeros(tokens.numel(), dtype=torch.bool)
        asked[masked.places[masked.targets != 0]] = True
        words = asked.reshape(7, -1)[:, 1:]
        assert torch.equal(words.all(1), words.any(1))
        counts.append(int(words.all(1).sum()))
    assert max(counts) == 3
    assert counts.count(3) > 10


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_batch_with_words_has_a_question(is_whole: bool) -> None:
    """One word, or one longer than the usual room, at a rate that hardly ever asks."""
    settings = MaskingSettings(rate=0.001, whole_words=is_whole)
    bounds = WordBounds.of(["<pad>", "<s>", "</s>", "<unk>", "▁word", "piece"])
    for line in ([1, 4, 0, 0], [1, 4, *[5] * 21]):
        masked = mask_rows(
            _rows(torch.tensor([line])), settings, bounds=bounds, generator=numpy_generator("one")
        )
        assert int((masked.targets != 0).sum()) == (len(line) - 1 if is_whole and line[-1] else 1)
    empty = mask_rows(
        _rows(torch.tensor([[1, 3, 0]])), settings, bounds=bounds, generator=numpy_generator("none")
    )
    assert int((empty.targets != 0).sum()) == 0


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("masked")
    (folder / "text.txt").write_text("\n".join([*GOOD, *BAD, *COUNTING]) + "\n", encoding="utf-8")
    path = str(folder / "text.txt")
    data = {"language": "en", "train": path, "valid": path, "row_tokens": 16}
    recipe = {
        "task": "masked_language",
        "data": data,
        "model": MODEL,
        "training": TRAINING | {"keep": {"best": "loss"}, "steps": 120, "batch_tokens": 256},
    }
    found = train(recipe_from(recipe), run=folder / "run")
    assert found.results["valid_accuracy"] > 0.2
    checked = check_run(recipe_from(recipe), directory=folder).results
    assert checked["lines"] == 40
    assert {"parameters", "expected_seconds", "expected_memory_mib"} <= set(checked)
    return folder / "run"


def test_a_classifier_starts_from_it(pretrained: Path, tmp_path: Path) -> None:
    changes = [f"model.start_from={pretrained}", "training.freeze=[encoder.embedding.*, layers 0]"]
    train(review_recipe(tmp_path, *changes), run=tmp_path / "run")
    before, after = (
        read_tensors(run / "model" / "weights.safetensors")
        for run in (pretrained, tmp_path / "run")
    )
    frozen = [
        name for name in after if name.startswith(("encoder.embedding.", "encoder.blocks.0."))
    ]
    assert len(frozen) > 5
    assert all(torch.equal(before[name], after[name]) for name in frozen)
    assert not torch.equal(before["encoder.norm.gain"], after["encoder.norm.gain"])
    with pytest.raises(CheckpointError, match="a classifier or tagger is needed"):
        Labeller.load(pretrained)


def test_it_gives_no_sentence_a_probability(pretrained: Path) -> None:
    with pytest.raises(
        CheckpointError,
        match=r"guesses a masked token from both sides.*a language model is needed; use `headwise "
        r"senses`",
    ):
        LanguageModel.load(pretrained)


def test_it_fills_in_a_gap_from_both_sides(pretrained: Path) -> None:
    filler = load_predictor(pretrained)
    assert isinstance(filler, GapFiller)
    whole = filler.predict(f"{GOOD[0].split()[0]} ____", count=1000)
    assert sum(math.exp(one.log_probability) for one in whole) == pytest.approx(1, abs=1e-6)
    assert len(whole) == filler.tokenizer.size - 4
    words = COUNTING[0].split()
    filled = [
        filler.predict(" ".join([*words[:k], "____", *words[k + 1 :]]))[0].text for k in range(1, 7)
    ]
    assert sum(map(str.__eq__, filled, words[1:])) >= 4
    assert filler.predict("____ two three") != filler.predict("____ film"), (
        "what stands behind the gap is read"
    )
    for text, length, complaint in (
        ("no gap", 1, "has 0 gaps"),
        ("__ __", 1, "has 2 gaps"),
        ("a __", 2, "2 tokens are"),
    ):
        with pytest.raises(UsageError, match=complaint):
            filler.predict(text, length=length)
    with pytest.raises(UsageError, match="has 22 tokens, this model has read 16 at most"):
        filler.predict("____ " + "a " * 20)


def test_pre_training_goes_on_where_it_stopped(pretrained: Path, tmp_path: Path) -> None:
    """With the guessing head too: before the first update it guesses as well as before."""
    changes = [f"model.start_from={pretrained}", "training.steps=1", "training.schedule.peak=1e-9"]
    again = train(
        recipe_from(read_settings_file(pretrained / "recipe.yaml"), changes), run=tmp_path / "run"
    )
    before = read_json(pretrained / "model" / "results.json")
    assert again.results["valid_loss"] == pytest.approx(before["valid_loss"], abs=1e-3)


def test_what_cannot_be_hidden(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n", encoding="utf-8")
    recipe = {
        "task": "masked_language",
        "data": {"language": "en", "train": str(tmp_path / "a.txt")},
    }
    with pytest.raises(DataError, match="empty"):
        train(recipe_from(recipe), run=tmp_path / "run")
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    with pytest.raises(DataError, match="fewer than two known words"):
        train(recipe_from(recipe), run=tmp_path / "run")
    (tmp_path / "a.txt").write_text("one two one two\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("three\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"data\.valid has no word of data\.train"):
        check_run(recipe_from(recipe, [f"data.valid={tmp_path / 'b.txt'}"]), directory=tmp_path)
    paired = recipe_from(recipe, ["second_task=next_sentence", "model.halves=true"])
    with pytest.raises(DataError, match=r"data\.train has 1 line\(s\); next_sentence needs three"):
        train(paired, run=tmp_path / "run")
    for change, message in (
        ("masking.hidden=0.95", "is more than 1"),
        (
            "second_task=next_sentence",
            "second_task=next_sentence with model.halves=false; pairs of sentences need",
        ),
        ("model.halves=true", "second_task=none with model.halves=true"),
        ("model.letters=9", "would show the letters of masked tokens"),
        ("training.keep.best=bleu", "validation measures loss, accuracy"),
    ):
        with pytest.raises(SettingsError, match=message):
            recipe_from(recipe, [change])


def test_a_validation_of_one_word_is_measured(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two three four\n" * 5, encoding="utf-8")
    (tmp_path / "b.txt").write_text("one\n", encoding="utf-8")
    data = {
        "language": "en",
        "train": str(tmp_path / "a.txt"),
        "valid": str(tmp_path / "b.txt"),
        "row_tokens": 16,
    }
    recipe = {
        "task": "masked_language",
        "data": data,
        "model": MODEL,
        "training": TRAINING | {"steps": 1},
    }
    recipe["training"] |= {"keep": {"best": "loss"}, "batch_tokens": 16}
    assert train(recipe_from(recipe), run=tmp_path / "run").results["valid_loss"] > 0.1


def test_the_counts_of_ten_thousand_hidden_words() -> None:
    """15 of 100 asked for; of these 80 hidden, 10 another word, 10 the word itself, within four
    deviations."""
    tokens = torch.from_numpy(np.random.default_rng(2).integers(4, 5003, size=(257, 263)))
    masked = mask_rows(
        _rows(tokens),
        MaskingSettings(),
        bounds=_every_token(5003),
        generator=numpy_generator("counts"),
    )
    asked = masked.targets != 0
    shown, targets = masked.rows.tokens.flatten()[masked.places[asked]], masked.targets[asked]
    total, count = tokens.numel(), int(asked.sum())
    assert abs(count - 0.15 * total) < 4 * (total * 0.15 * 0.85) ** 0.5
    kinds = {"hidden": (shown == MASK, 0.8), "itself": (shown == targets, 0.1)}
    kinds["another"] = ((shown != MASK) & (shown != targets), 0.1)
    for found, share in kinds.values():
        assert abs(int(found.sum()) - share * count) < 4 * (count * share * (1 - share)) ** 0.5


def test_next_sentence_beside_hidden_words(tmp_path: Path) -> None:
    """Lines that count on: a line and its next are told from a line and any other, and the encoder
    can be started from."""
    lines = [
        f"{name} {word}"
        for name in ("red", "blue", "green", "black", "white")
        for word in ("begins", "ends")
    ] * 12
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = str(tmp_path / "text.txt")
    recipe = {
        "task": "masked_language",
        "second_task": "next_sentence",
        "data": {"language": "en", "train": path, "valid": path, "row_tokens": 12},
        "model": MODEL | {"halves": True},
        "training": TRAINING | {"keep": {"best": "loss"}, "steps": 150, "batch_tokens": 192},
    }
    found = train(recipe_from(recipe), run=tmp_path / "run").results
    assert found["valid_next_sentence_accuracy"] > 0.75
    assert found["valid_accuracy"] > 0.3
    changes = [f"model.start_from={tmp_path / 'run'}", "training.steps=2"]
    with pytest.raises(CheckpointError, match=r"model\.halves=True there, False here"):
        train(review_recipe(tmp_path, *changes), run=tmp_path / "other")
    train(
        review_recipe(tmp_path, *changes, "model.halves=true", "training.freeze=[encoder.*]"),
        run=tmp_path / "other",
    )
    before, after = (
        read_tensors(tmp_path / run / "model" / "weights.safetensors") for run in ("run", "other")
    )
    assert torch.equal(
        before["encoder.halves.halves.weight"], after["encoder.halves.halves.weight"]
    )


def test_a_bundle_from_before_a_setting_can_be_started_from(
    pretrained: Path, tmp_path: Path
) -> None:
    """What came later has its default there."""
    model = tmp_path / "run" / "model"
    shutil.copytree(pretrained / "model", model)
    file = model / "recipe.yaml"
    file.write_text(
        file.read_text(encoding="utf-8").replace("  halves: false\n", ""), encoding="utf-8"
    )
    assert "halves" not in file.read_text(encoding="utf-8")
    write_manifest(model, kind=KIND)
    train(
        review_recipe(tmp_path, f"model.start_from={tmp_path / 'run'}", "training.steps=1"),
        run=tmp_path / "new",
    )
