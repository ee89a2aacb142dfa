"""Names of other toolkits lead to keys that our recipes have."""

import pytest

from headwise.errors import SettingsError
from headwise.settings.problems import has_path
from headwise.settings.usual_names import USUAL_NAMES, UsualName
from headwise.tasks.recipe import _type_of, load_recipe
from headwise.tasks.recipe_files import propose_overrides
from headwise.tasks.table import task_words


@pytest.mark.parametrize("usual", USUAL_NAMES, ids=lambda one: one.words[0])
def test_some_task_has_the_keys_that_are_named(usual: UsualName) -> None:
    types = [_type_of({"task": task}) for task in task_words()]
    assert any(
        all(has_path(recipe, path.split(".")) for path in usual.paths)
        for recipe in types
        if recipe is not None
    )


@pytest.mark.parametrize(
    ("option", "task", "proposed"),
    [
        ("--lr", "translation", ["training.schedule.peak=3"]),
        ("--lr", "word_vectors", []),
        ("--epoch", "word_vectors", ["training.epochs=3"]),
        ("--heads", "translation", ["model.encoder.heads=3", "model.decoder.heads=3"]),
        ("--heads", "classification", ["model.heads=3"]),
        ("--max-len", "tagging", ["data.row_tokens=3"]),
        ("--max-len", "language_modeling", ["reading.row_tokens=3"]),
    ],
)
def test_an_option_of_another_toolkit_is_answered_by_the_keys_of_the_task(
    option: str, task: str, proposed: list[str]
) -> None:
    assert propose_overrides(option, "3", task=task) == proposed


@pytest.mark.parametrize(
    ("override", "meant"),
    [
        (
            "training.learning_rate=3",
            "training.learning_rate: unknown key; did you mean training.schedule.peak",
        ),
        (
            "optim.lr=3",
            "optim: unknown key; did you mean training.schedule.peak",
        ),  # an unknown section
        ("data.max_tokens=3", "did you mean data.filter.max_tokens"),
        ("training.batch_size=3", "did you mean training.batch_tokens"),
        ("epochs=3", "epochs: unknown key; did you mean training.steps"),
        ("model.n_heads=3", "did you mean model.encoder.heads or model.decoder.heads"),
        ("model.encoder.feed_forward.kind=swiglu", "did you mean model.feed_forward.kind=gated"),
        ("model.encoder.norm.kind=rms", "did you mean model.norm.kind=rms"),
    ],
)
def test_a_key_of_another_toolkit_is_answered_with_ours(override: str, meant: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_recipe("pocket", [override])
    assert f"{meant}?" in refused.value.en
    assert (
        f"是否想写 {meant.split('did you mean ')[1].replace(' or ', ' 或 ')}？" in refused.value.zh
    )
