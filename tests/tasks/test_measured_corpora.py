"""A training text that was replaced, and parts that were not: told before and beside the result,
where it is so and nowhere else."""

import json
from pathlib import Path

import pytest

from headwise.cli.main import main
from headwise.comparing.recipe_table import ComparisonResult
from headwise.comparing.variants import plan_comparison
from headwise.language import use_language
from headwise.tasks.measured_corpora import note_on_measuring
from headwise.tasks.recipe import load_recipe
from tests.tasks.tiny import OVERRIDES

BOTH = "data.train is my/train, but data.valid and data.test are still the recipe's own (pocket)"


@pytest.mark.parametrize(
    ("recipe", "overrides", "expected"),
    [
        ("pocket", ["data.train=my/train"], BOTH),
        ("pocket", ["data.train=[{path: my/train, weight: 2}]"], BOTH),
        (
            "pocket",
            ["data.train=my/train", "data.valid=my/valid"],
            "data.test is still the recipe's own (pocket)",
        ),
        (
            "pocket",
            ["data.train=my/train", "data.test=null"],
            "data.valid is still the recipe's own (pocket)",
        ),
        (
            "multi30k-en-de",
            ["data.train=my/train"],
            "(known:multi30k/tok/val.lc.norm.tok, known:multi30k/tok/test",
        ),
        (
            "sst2",
            ["data.train=my/train"],
            "data.valid and data.test are still the recipe's own (known:sst2/dev",
        ),
        (
            "ptb-lstm",
            ["data.train=known:wikitext-2/train"],
            "data.train is known:wikitext-2/train, but",
        ),
        ("pocket", ["data.train=my/train", "data.valid.count=5", "data.test.count=5"], BOTH),
        (
            "pocket",
            ["data.train=my/train", "data.valid=pocket:valid:5", "data.test=null"],
            "data.valid is still the recipe's own (pocket:valid:5)",
        ),
        (
            "multi30k-en-de",
            [
                "data.train=my/train",
                "data.valid={name: multi30k/tok/val.lc.norm.tok, limit: 5}",
                "data.test=my/test",
            ],
            "data.valid is still the recipe's own (multi30k/tok/val.lc.norm.tok)",
        ),
        (
            "pocket",
            [
                "data={source: en, target: de, train: my/train, valid: {kind: pocket, split: "
                "valid, count: 5}}"
            ],
            "data.valid is still the recipe's own (pocket)",
        ),
        (
            "multi30k-en-de",
            ["data.train=my/train", "data.valid=known:multi30k/raw/val", "data.test=null"],
            None,
        ),
        ("pocket", ["data.train=pocket:train:9"], None),
        ("pocket", [], None),
        ("pocket", ["training.steps=5", "data.valid=my/valid"], None),
        ("pocket", ["data.train=my/train", "data.valid=my/valid", "data.test=my/test"], None),
        ("pocket", ["data.train=my/train", "data.valid=null", "data.test=null"], None),
        ("pocket", ["data.train.count=9"], None),
        ("pocket", ["data.train={kind: pocket, split: train, count: 9}"], None),
        ("multi30k-en-de", ["data.train=known:multi30k/raw/train"], None),
        ("multi30k-en-de", ["data.train=[known:multi30k/tok/train.lc.norm.tok, my/more]"], None),
        ("ptb-lstm", ["data.train={name: ptb/train, limit: 9}"], None),
    ],
)
def test_when_it_is_told(recipe: str, overrides: list[str], expected: str | None) -> None:
    found = note_on_measuring(recipe, overrides)
    assert (found is None) if expected is None else (found is not None and expected in found)


def test_a_recipe_that_is_a_value() -> None:
    found = note_on_measuring(load_recipe("pocket"), ["data.train=my/train"])
    assert found is not None
    assert found.startswith(BOTH)


def test_in_chinese() -> None:
    use_language("zh")
    try:
        found = note_on_measuring("pocket", ["data.train=my/train"])
    finally:
        use_language("en")
    assert found is not None
    assert "data.train 是 my/train，而 data.valid、data.test 仍是配方自带的（pocket）" in found


def test_before_training_and_beside_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentences = [
        "The dog is old.",
        "The cat is young.",
        "A man reads a book.",
        "The child sleeps.",
    ] * 5
    (tmp_path / "my.en").write_text("".join(f"{text} {n}\n" for n, text in enumerate(sentences)))
    (tmp_path / "my.de").write_text(
        "".join(f"{text[::-1]} {n}\n" for n, text in enumerate(sentences))
    )
    words = [
        *OVERRIDES,
        f"data.train={tmp_path / 'my'}",
        "text={kind: characters}",
        "training.steps=2",
    ]
    own = [word for word in words if not word.startswith(("data.valid", "data.test"))]
    words = [*own, "decoding.max_length=2", "evaluation.validation_sentences=1"]
    assert main(["train", "pocket", *words, "--check"]) == 0
    said = capsys.readouterr()
    told = (
        f"data.train is {tmp_path / 'my'}, but data.valid and data.test are still the recipe's "
        "own (pocket)"
    )
    assert f"headwise: note: {told}" in said.err
    assert f"note: {told}" in said.out
    assert said.out.index("parameters") < said.out.index("note: ")
    assert main(["train", "pocket", *words, "--check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"][0].startswith(told)


def test_a_comparison_says_it_once(tmp_path: Path) -> None:
    runs = plan_comparison(
        ["pocket", *OVERRIDES[:4], "data.train=my/train", "model.norm.kind=layer,rms"],
        directory=tmp_path,
    )
    notes = {run.note for run in runs}
    assert len(notes) == 1
    result = ComparisonResult(
        tmp_path,
        (),
        "",
        1,
        {},
        {},
        runs[0].comparison_metrics,
        notes=tuple(note for note in notes if note),
    )
    assert result.remarks()[0].startswith(BOTH)
