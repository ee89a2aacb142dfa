"""The sealed recipe of a run: damage is no wish, and a wish is refused, or allowed and said."""

import logging

import pytest
import yaml

from headwise.errors import CheckpointError, SettingsError, UsageError
from headwise.training.run_directory import RunDirectory
from headwise.training.run_recipe import check_recipe, flatten, read_run_recipe, sealed_recipe

RECIPE = {
    "model": {"dim": 11, "layers": [{"heads": 1}]},
    "training": {"steps": 20, "seed": 7, "time_limit": None},
}
COSINE = {"training": {"steps": 20, "schedule": {"kind": "cosine"}}}


def begin(path, recipe):
    """A run that has saved something."""
    RunDirectory.open(path, recipe=recipe).close()
    (path / "checkpoints" / "step-1").mkdir(parents=True)


def test_a_changed_recipe_is_refused_with_the_difference(tmp_path):
    begin(tmp_path, RECIPE)
    changed = {
        "model": {"dim": 12, "layers": [{"heads": 2}]},
        "training": {"steps": 10, "seed": 7, "clip": 1.0},
    }
    with pytest.raises(UsageError, match="differs from the one") as caught:
        RunDirectory.open(tmp_path, recipe=changed, resume=True)
    for line in (
        "model.dim: 11 → 12",
        "model.layers.0.heads: 1 → 2",
        "training.clip: (absent) → 1.0",
        "training.steps: 20 → 10",
    ):
        assert line in str(caught.value)
    assert "seed" not in str(caught.value)
    assert "time_limit:" not in str(caught.value)
    longer = {**RECIPE, "training": {**RECIPE["training"], "steps": 30, "time_limit": 9}}
    RunDirectory.open(tmp_path, recipe=longer, resume=True).close()
    assert "steps: 30" in (tmp_path / "recipe.yaml").read_text(encoding="utf-8")


def test_flatten():
    assert flatten({"a": {"b": 1, "c": [2, {"d": None}]}}) == {
        "a.b": 1,
        "a.c.0": 2,
        "a.c.1.d": None,
    }


def test_what_may_change_is_said(tmp_path, caplog):
    longer = {**RECIPE, "training": {**RECIPE["training"], "steps": 30}}
    with caplog.at_level(logging.WARNING):
        check_recipe(RECIPE, RECIPE, file=tmp_path)
        assert caplog.text == ""
        check_recipe(RECIPE, longer, file=tmp_path)
    assert "training.steps: 20 → 30\nno update of the weights depends on it" in caplog.text


def test_a_longer_run_is_not_the_same_where_the_schedule_has_an_end(tmp_path, caplog):
    longer = {"training": {**COSINE["training"], "steps": 30}}
    check_recipe(COSINE, longer, file=tmp_path)
    assert "the cosine schedule ends with training.steps" in caplog.text


def test_every_flipped_bit_is_damage_or_harmless(tmp_path):
    """The only bits that may flip unnoticed are those of the words of the seal; the settings are
    then intact.
    """
    file = tmp_path / "recipe.yaml"
    content = sealed_recipe(RECIPE).encode()
    unnoticed, named = 0, set()
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        file.write_bytes(flipped)
        try:
            assert read_run_recipe(file) == RECIPE
            unnoticed += 1
        except CheckpointError as error:
            named.add((error.exit_status, error.file))
    assert named == {(3, file)}
    assert 0 < unnoticed < 8 * len("# damage to the lines above is noticed by their SHA-256 ")


def test_damage_says_where_a_copy_is(tmp_path):
    RunDirectory.open(tmp_path, recipe=RECIPE).close()
    text = (tmp_path / "recipe.yaml").read_text(encoding="utf-8")
    (tmp_path / "recipe.yaml").write_text(text.replace("seed: 7", "seed: 5"), encoding="utf-8")
    with pytest.raises(
        CheckpointError, match=r"is not as it was written .*no checkpoint yet, so nothing is lost"
    ):
        RunDirectory.open(tmp_path, recipe=RECIPE, resume=True)
    copy = tmp_path / "checkpoints/step-5/recipe.yaml"
    copy.parent.mkdir(parents=True)
    copy.write_text(text, encoding="utf-8")
    for damaged in (text.replace("seed: 7", "seed: 5"), "{", "\x00", ""):
        (tmp_path / "recipe.yaml").write_text(damaged, encoding="utf-8")
        with pytest.raises(
            CheckpointError, match=f"to mend it: cp {copy} {tmp_path / 'recipe.yaml'}"
        ):
            RunDirectory.open(tmp_path, recipe=RECIPE, resume=True)


def test_a_recipe_without_a_seal_is_that_of_an_older_run(tmp_path):
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(RECIPE), encoding="utf-8")
    assert read_run_recipe(tmp_path / "recipe.yaml") == RECIPE


def test_settings_that_came_later_are_no_difference(tmp_path):
    begin(tmp_path, RECIPE)
    newer = {**RECIPE, "evaluation": {"lowercase": False}}
    with pytest.raises(UsageError, match=r"evaluation.lowercase: \(absent\) → False"):
        RunDirectory.open(tmp_path, recipe=newer, resume=True)
    complete = lambda old: {"evaluation": {"lowercase": False}, **old}  # noqa: E731
    RunDirectory.open(tmp_path, recipe=newer, resume=True, complete=complete).close()


def test_a_recipe_of_a_version_that_knew_other_settings(tmp_path):
    def refuse(old):
        raise SettingsError("model.moat: unknown key", "未知的键")

    begin(tmp_path, RECIPE)
    with pytest.raises(
        CheckpointError, match=r"does not fit this version of headwise \(model.moat: unknown key\)"
    ):
        RunDirectory.open(tmp_path, recipe=RECIPE, resume=True, complete=refuse)


def test_how_the_end_is_measured_may_change(tmp_path):
    recipe = {"decoding": {"kind": "beam", "size": 5}, "data": {"train": "a", "test": "b"}}
    begin(tmp_path, recipe)
    changed = {"decoding": {"kind": "greedy"}, "data": {"train": "a", "test": "c"}}
    RunDirectory.open(tmp_path, recipe=changed, resume=True).close()
    with pytest.raises(UsageError, match=r"data\.train: a → z"):
        RunDirectory.open(
            tmp_path, recipe={**changed, "data": {"train": "z", "test": "c"}}, resume=True
        )


def test_what_is_only_shown_while_it_learns_may_change_and_what_chooses_the_weights_may_not(
    tmp_path,
):
    for metric, allowed in (("loss", True), ("bleu", False), ("chrf", False)):
        recipe = {"training": {"keep": {"best": metric}}, "evaluation": {"validation_sentences": 0}}
        begin(tmp_path / metric, recipe)
        watched = {**recipe, "evaluation": {"validation_sentences": 200}}
        if allowed:
            RunDirectory.open(tmp_path / metric, recipe=watched, resume=True).close()
        else:
            with pytest.raises(UsageError, match=r"evaluation\.validation_sentences: 0 → 200"):
                RunDirectory.open(tmp_path / metric, recipe=watched, resume=True)


def test_another_test_set_is_refused_where_training_was_kept_apart_from_the_old_one(tmp_path):
    recipe = {"data": {"train": "a", "test": ["b"], "filter": {"drop_leaked": True}}}
    begin(tmp_path, recipe)
    with pytest.raises(UsageError, match=r"data\.test\.0: b → c"):
        RunDirectory.open(tmp_path, recipe={"data": {**recipe["data"], "test": ["c"]}}, resume=True)
