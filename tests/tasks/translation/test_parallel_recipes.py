"""Recipes of parallel translators: what fits together, what is refused, and a run of each."""

import logging
from pathlib import Path

import pytest

from headwise.decoding.parallel.one_pass import OnePassSettings
from headwise.errors import DataError, SettingsError
from headwise.tasks.recipe import recipe_from
from headwise.tasks.run import train
from headwise.tasks.translation.recipe import TranslationRecipe
from headwise.tasks.translation.translator import Translator
from tests.tasks.tiny import tiny_recipe, train_tiny

BASE = ("model.kind=parallel", "decoding=null", "decoding.kind=one_pass", "training.steps=3")
PLAIN = "training.objective={kind: cross_entropy, label_smoothing: 0}"
CTC = (*BASE, PLAIN, "model.length.kind=upsampled", "model.structure.kind=ctc")
GRAPH = (
    *BASE,
    PLAIN,
    "model.length={kind: upsampled, factor: 4}",
    "model.structure={kind: graph, link_heads: 2}",
)


def test_the_default_decoding_is_that_of_the_model() -> None:
    data = {"source": "en", "target": "de", "train": "nowhere"}
    recipe = recipe_from({"task": "translation", "data": data, "model": {"kind": "parallel"}})
    assert isinstance(recipe, TranslationRecipe)
    assert recipe.decoding == OnePassSettings()
    one = {"task": "translation", "data": data, "model": {"kind": "parallel"}}
    changed = recipe_from(one | {"decoding": {"lengths": 2}})
    assert isinstance(changed, TranslationRecipe)
    assert changed.decoding == OnePassSettings(lengths=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["decoding.kind=beam"], r"decoding\.kind=beam .* use decoding\.kind=one_pass"),
        (
            ["model.structure.kind=ctc"],
            r"classifier cannot be combined with structure\.kind=ctc; set structure\.kind to ind",
        ),
        (
            ["model.length.kind=upsampled"],
            r"upsampled cannot be combined with structure\.kind=independent; .* ctc or graph",
        ),
        (
            [
                "model.length.kind=upsampled",
                "model.structure.kind=ctc",
                PLAIN.replace("0}", "0.1}"),
            ],
            r"label_smoothing=0\.1 spreads .* set training\.objective\.label_smoothing=0",
        ),
        (
            [
                "model.length.kind=upsampled",
                "model.structure.kind=ctc",
                "training.objective={kind: masked, label_smoothing: 0}",
            ],
            r"masked hides tokens at known positions.* use training\.objective\.kind=glancing",
        ),
        (
            [*CTC, "training.cuda_graphs=on"],
            r"follow the lengths of the sentences; set training\.cuda_graphs=off",
        ),
        (
            ["model.length.kind=upsampled", "model.structure={kind: graph, link_heads: 3}"],
            "link_heads",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_training(words: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        tiny_recipe(*BASE, *words)


@pytest.mark.parametrize("objective", ["masked", "glancing"])
def test_objectives_that_show_the_target_need_a_parallel_model(objective: str) -> None:
    with pytest.raises(SettingsError, match=r"shows a part of the target.* model\.kind=parallel"):
        tiny_recipe(f"training.objective.kind={objective}")


def test_a_search_for_parallel_models_is_refused_for_others() -> None:
    with pytest.raises(
        SettingsError, match=r"gives one token after the other; use decoding\.kind=gr"
    ):
        tiny_recipe("decoding=null", "decoding.kind=one_pass")


@pytest.mark.parametrize(
    "words",
    [
        [*BASE, "training.objective.kind=masked"],
        [*BASE, "training.objective.kind=glancing", "model.input.kind=copy"],
        [*BASE, "model.length={kind: many_begin, positions: 64}"],
        CTC,
        GRAPH,
    ],
    ids=["masked", "glancing", "many_begin", "ctc", "graph"],
)
def test_a_run_ends_with_a_translator(words: list[str], tmp_path: Path) -> None:
    train_tiny(tmp_path / "run", words)
    translator = Translator.load(tmp_path / "run")
    (found,) = translator(["The dog is old."], alignment=True, attention=True)
    assert found.attention is not None
    num_written = len(found.target_pieces)
    assert all(target < num_written for _, target in found.alignment or ())
    crosses = [maps for name, maps in found.attention.maps.items() if name.endswith(".cross")]
    assert all(maps.shape[1] == num_written for maps in crosses)


def test_a_fixed_number_of_positions_must_hold_every_target(tmp_path: Path) -> None:
    words = [*BASE, "model.length={kind: many_begin, positions: 8}"]
    with pytest.raises(DataError, match=r"has 8 positions .*set model\.length\.positions="):
        train(tiny_recipe(*words), run=tmp_path / "run")


def test_targets_that_do_not_fit_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.en").write_text("a b\n" * 3 + "a b c d e f\n" * 40, encoding="utf-8")
    long = " ".join(["x", "y", "z", "w", "v", "u"] * 2)
    (corpus / "a.de").write_text(f"{long}\n" * 3 + "x y z w v u\n" * 40, encoding="utf-8")
    words = [
        *CTC,
        f"data.train={corpus}/a",
        "data.valid=null",
        "data.test=null",
        "data.filter={max_ratio: 100, drop_duplicates: false}",
        "text=null",
        "text={kind: words, shared: false}",
        "model.embedding.tied=output",
        "model.length.factor=1",
    ]
    with caplog.at_level(logging.WARNING):
        train(tiny_recipe(*words), run=tmp_path / "run")
    assert "3 of 43 training pairs have more target tokens than the decoder has" in caplog.text
