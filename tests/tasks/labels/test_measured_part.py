"""Labels kept by a run, and taggers and classifiers side by side."""

import json
from pathlib import Path

import pytest

from headwise.comparing.recipe_table import as_markdown
from headwise.comparing.recipes import compare
from headwise.comparing.variants import plan_comparison
from headwise.errors import DataError, UsageError
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.labels.measured_part import LabelledPart, read_label_statistics
from headwise.tasks.recipe import write_recipe
from tests.tasks.labels.test_task import review_recipe, tag_recipe


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    found = LabelledPart((("V", "D"), ("N",)), (("V", "P"), ("N",)), num_words=3, seconds=0.5)
    assert found.as_dict()["accuracy"] == pytest.approx(2 / 3, abs=1e-6)
    found.save(tmp_path / "labels", "test")
    assert read_label_statistics(tmp_path / "labels", "test").rows.tolist() == [[1, 2], [1, 1]]


@pytest.mark.parametrize(
    "text", ["no json", '{"found": ["a"]}', '["a"]', '{"found": ["a"], "given": ["a", "b"]}']
)
def test_a_damaged_file_of_labels(tmp_path: Path, text: str) -> None:
    (tmp_path / "test.jsonl").write_text(text + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="is not a file of labels found and given"):
        read_label_statistics(tmp_path, "test")


def _write(recipe: AnyRecipe, path: Path) -> str:
    path.write_text(write_recipe(recipe), encoding="utf-8")
    return str(path)


@pytest.mark.prove
def test_two_rungs_in_one_table(tmp_path: Path) -> None:
    recipe = _write(tag_recipe(tmp_path, "training.steps=30"), tmp_path / "tags.yaml")
    words = [recipe, "model.kind=word,encoder", "model.dim=16"]
    result = compare(words, directory=tmp_path / "rungs")
    word, encoder = result.variants
    assert (word.name, encoder.name) == ("word", "encoder")
    # 18 words of which 7 are "saw", 3 of them verbs: one word at a time gets at most 15 right.
    assert word.quality["accuracy"].value == pytest.approx(100 * 15 / 18, abs=0.01)
    assert encoder.quality["accuracy"].value == 100
    assert encoder.differences["accuracy"].value == pytest.approx(100 * 3 / 18, abs=0.01)
    assert encoder.words_per_second is not None
    table = as_markdown(result)
    assert "accuracy, %, 95 % interval" in table
    assert "words/s" in table
    assert "BLEU" not in table
    saved = json.loads((tmp_path / "rungs" / "comparison.json").read_text(encoding="utf-8"))
    assert saved["variants"][1]["verdict"]


def test_what_cannot_stand_in_one_table(tmp_path: Path) -> None:
    tags = _write(tag_recipe(tmp_path), tmp_path / "tags.yaml")
    reviews = _write(review_recipe(tmp_path), tmp_path / "reviews.yaml")
    with pytest.raises(
        UsageError,
        match="tags is of task tagging, reviews of classification; compare recipes of one task",
    ):
        plan_comparison([tags, reviews], directory=tmp_path)
    with pytest.raises(UsageError, match=r"differ in data\.test, .*; give one data\.test for all"):
        plan_comparison([reviews, "data.test=a.tsv,b.tsv"], directory=tmp_path)
    with pytest.raises(
        UsageError, match="tags is of task tagging, english-masked of masked_language"
    ):
        plan_comparison([tags, "english-masked"], directory=tmp_path)
