"""Language models side by side: n-grams with neural ones, and what cannot be compared."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from headwise.comparing.recipes import compare
from headwise.comparing.run_processes import Outcome
from headwise.comparing.run_scores import score_variants
from headwise.comparing.variants import Run, plan_comparison
from headwise.errors import UsageError
from headwise.tasks.item_scores import save_item_scores
from headwise.tasks.recipe import recipe_from
from tests.tasks.every_task import TEXT, TRAINING


def _recipe(folder: Path, **changes: Any) -> dict[str, Any]:
    file = folder / "text.txt"
    file.write_text("\n".join(TEXT) + "\n")
    data = {"language": "en", "train": str(file), "test": str(file)}
    return {"task": "language_modeling", "data": data, "model": {"order": 2}, **changes}


@pytest.fixture
def recipes(tmp_path: Path) -> list[str]:
    """Files of an n-gram model and of a neural one."""
    neural = {"kind": "neural_ngram", "order": 2, "dim": 4, "hidden": 4}
    found = {"counted": _recipe(tmp_path), "trained": _recipe(tmp_path, model=neural)}
    found["trained"]["training"] = TRAINING
    for name, recipe in found.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(recipe))
    return [str(tmp_path / f"{name}.yaml") for name in found]


def test_counted_and_trained_models_stand_in_one_table(recipes: list[str], tmp_path: Path) -> None:
    result = compare(recipes, directory=tmp_path / "here")
    assert not result.failed, result.remarks()
    counted, trained = result.variants
    assert counted.quality["perplexity"].value < trained.quality["perplexity"].value
    assert trained.verdict(result.comparison_metrics.metrics[0]).startswith("worse")
    assert counted.step_seconds is None
    assert counted.training_seconds is not None
    assert "seconds" in result.headings()
    again = compare(recipes, directory=tmp_path / "here")
    assert again.variants[0].quality == counted.quality, "a finished run is not repeated"
    with pytest.raises(UsageError, match="a comparison with other settings stands here"):
        compare([*recipes, "model.order=3"], directory=tmp_path / "here")


@pytest.mark.parametrize(
    ("word", "key"),
    [("text.min_count=1,2", "text"), ("data.train={file},[{file}, {file}]", r"data\.train")],
)
def test_other_tokens_are_refused_with_the_reason(
    word: str, key: str, recipes: list[str], tmp_path: Path
) -> None:
    word = word.replace("{file}", str(tmp_path / "text.txt"))
    with pytest.raises(UsageError, match=rf"differ in {key}, so their vocabularies may differ"):
        plan_comparison([recipes[0], word], directory=tmp_path)


def test_scores_that_are_no_probabilities_are_refused(recipes: list[str], tmp_path: Path) -> None:
    word = "model.smoothing={kind: stupid_backoff},{kind: add_k}"
    with pytest.raises(UsageError, match="do not sum to one"):
        plan_comparison([recipes[0], word], directory=tmp_path)


def test_what_cannot_be_scored_has_a_reason(tmp_path: Path) -> None:
    recipe = recipe_from(_recipe(tmp_path))
    losses = {"plain": ([1.0, 2.0], [1, 2]), "never": ([1.0, float("inf")], [1, 2])}
    losses["other"] = ([1.0, 2.0], [2, 2])
    outcomes = []
    for name, (loss, tokens) in losses.items():
        run = Run(name, 1, recipe, tmp_path / name)
        run.directory.mkdir()
        save_item_scores(run.directory, "test", {"loss": loss, "tokens": tokens})
        outcomes.append(Outcome(run, {"parameters": 1}))
    (tmp_path / "lost").mkdir()
    outcomes.append(Outcome(Run("lost", 1, recipe, tmp_path / "lost"), {"parameters": 1}))
    found = score_variants(outcomes, outcomes[0].run.comparison_metrics)
    assert [*found["plain"].by_metric] == ["perplexity"]
    reasons = {name: one.problems[0] for name, one in found.items() if one.problems}
    assert "probability 0" in reasons["never"]
    assert "other tokens" in reasons["other"]
    assert "test.jsonl" in reasons["lost"]
    assert len(reasons) == 3
