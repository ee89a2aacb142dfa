"""What words on the command line mean: recipes, alternatives, combinations, names and
directories."""

from pathlib import Path

import pytest

from headwise.comparing.variants import Run, file_name, plan_comparison, split_values
from headwise.errors import SettingsError, UsageError
from tests.tasks.tiny import OVERRIDES


def plan(*words: str, seeds: tuple[int, ...] = ()) -> list[Run]:
    return plan_comparison(["pocket", *OVERRIDES, *words], seeds=seeds, directory=Path("here"))


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("a.b=1", ["1"]),
        ("a.b=layer,rms", ["layer", "rms"]),
        ("a.b={kind: window, left: 8},{kind: fused}", ["{kind: window, left: 8}", "{kind: fused}"]),
        ("a.b=[x, y]", ["[x, y]"]),
        ("a.b='x,y', z", ["'x,y'", "z"]),
        ("a.b=[{c: 1}, {d: 2}],null", ["[{c: 1}, {d: 2}]", "null"]),
    ],
)
def test_commas_outside_brackets_separate(word: str, values: list[str]) -> None:
    assert split_values(word) == ("a.b", values)


def test_alternatives_become_named_recipes() -> None:
    runs = plan("model.norm.kind=layer,rms", "training.steps=5", seeds=(3, 7))
    assert [(run.variant, run.seed) for run in runs] == [
        ("layer", 3),
        ("rms", 3),
        ("layer", 7),
        ("rms", 7),
    ]
    assert [run.recipe.model.norm.kind for run in runs[:2]] == ["layer", "rms"]
    assert {run.recipe.training.steps for run in runs} == {5}
    assert runs[3].directory == Path("here/runs/rms/seed-7")
    assert runs[3].recipe_file == Path("here/runs/rms/seed-7.yaml")


def test_several_alternatives_make_every_combination() -> None:
    runs = plan("model.norm={kind: layer},{kind: rms, place: after}", "model.dim=16,32")
    assert [run.variant for run in runs] == [
        "norm=layer, dim=16",
        "norm=layer, dim=32",
        "norm=rms place=after, dim=16",
        "norm=rms place=after, dim=32",
    ]
    assert len({run.directory for run in runs}) == 4
    assert [run.variant for run in plan("model.dim=16,32")] == ["dim=16", "dim=32"]


def test_recipes_are_named_after_their_files(tmp_path: Path) -> None:
    runs = plan_comparison(
        ["pocket", "base", "data.train=x", "data.valid=y", "data.test=z"], directory=tmp_path
    )
    assert [run.variant for run in runs] == ["pocket", "base"]


def test_a_name_becomes_one_directory() -> None:
    assert file_name("rms place=after, dim=16") == "rms-place=after-dim=16"
    assert "/" not in file_name("../../etc")
    assert file_name("…") == "variant"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["model.dim=16,32"], "nothing to compare"),
        (["pocket", "model.dim=16"], "one variant only"),
        (["pocket", "pocket"], "would be called 'pocket'"),
        (
            ["pocket", f"model.dim={','.join(str(2 * n) for n in range(1, 1500))}"],
            "more than 1000 runs",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan_comparison(words, directory=Path("here"))


def test_a_recipe_that_does_not_exist_is_said_before_anything_else() -> None:
    with pytest.raises(SettingsError, match="there is no recipe 'nosuch'"):
        plan_comparison(["nosuch"], directory=Path("here"))


def test_slips_are_refused() -> None:
    with pytest.raises(SettingsError, match="a value is empty"):
        plan("model.dim=16,32,")
    with pytest.raises(UsageError, match="a seed is given twice"):
        plan("model.dim=16,32", seeds=(1, 1))


def test_a_model_that_cannot_be_is_refused_before_any_is_trained() -> None:
    with pytest.raises(
        UsageError,
        match=r"variant linformer: attention\.kind=linformer stands in model\.decoder\.attention",
    ):
        plan_comparison(
            ["pocket", "model.decoder.attention.kind=fused,linformer"], directory=Path("nowhere")
        )
    assert not Path("nowhere").exists()


def test_a_tagger_that_cannot_be_is_refused_too() -> None:
    with pytest.raises(
        UsageError, match=r"variant continuous: position\.kind=continuous marks queries"
    ):
        plan_comparison(
            [
                "ud-ewt-tags",
                "model.kind=encoder",
                "model.attention.kind=reformer",
                "model.position.kind=sinusoidal,continuous",
            ],
            directory=Path("nowhere"),
        )


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("data.test.count=20,30", "data.test"),
        ("data.target=de,zh", "data.target"),
        ("data.source=en,zh", "data.source"),
        ("evaluation.lowercase=false,true", "evaluation.lowercase"),
    ],
)
def test_different_questions_are_not_compared(word: str, key: str) -> None:
    """A p-value of two test sets says nothing, and translations into two languages are not read at
    all."""
    with pytest.raises(UsageError, match=rf"differ in {key}, .* give one {key} for all"):
        plan(word)


def test_the_same_question_in_other_words_is_one(tmp_path: Path) -> None:
    assert len(plan("data.train.count=200,300")) == 2
    with pytest.raises(UsageError, match=r"differ in data\.test"):
        plan_comparison(["sst2", "data.test=known:sst2/test,known:sst2/dev"], directory=tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ("model.dim=16,32", "model.dim=24,32"),
        ("model.norm.place=before,after", "model.norm={kind: layer},{kind: rms}"),
        ("model.norm={kind: layer},{kind: rms}", "model.norm.kind=layer,power"),
    ],
)
def test_alternatives_that_overwrite_each_other_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="one would overwrite the other; give each key once"):
        plan(*words)


def test_alternatives_within_each_other_are_what_they_are_called() -> None:
    runs = plan("model.norm={kind: layer},{kind: rms}", "model.norm.place=before,after")
    assert [(run.recipe.model.norm.kind, run.recipe.model.norm.place) for run in runs] == [
        ("layer", "before"),
        ("layer", "after"),
        ("rms", "before"),
        ("rms", "after"),
    ]
