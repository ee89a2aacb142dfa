"""`headwise attend` as a reader of the guide would use it."""

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Headwise
from tests.docs.pages import GUIDE, read_page


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_guide_shows_what_is_printed(headwise: Headwise, language: str) -> None:
    shown = [
        block
        for block in read_page(GUIDE / language / "11-attention.md").blocks
        if block.language == "console"
    ]
    assert len(shown) == 4
    for block in shown:
        command = shlex.split(block.lines[0].removeprefix("$ "))
        answer = headwise(*command[1:], "--lang", language)
        assert answer.status == 0
        assert [line.split() for line in answer.out.splitlines()] == [
            line.split() for line in block.lines[1:]
        ]


def test_json_and_numbers_of_ones_own(headwise: Headwise) -> None:
    answer = headwise(
        "attend",
        "--keys",
        "51,56,58",
        "--values",
        "40,43,48",
        "--queries",
        "57",
        "--score",
        "gaussian",
        "--json",
    )
    result = json.loads(answer.out)
    assert result["scores"] == [[-18.0, -0.5, -0.5]]
    assert result["weights"][0] == pytest.approx([0, 0.5, 0.5], abs=1e-7)
    assert result["outputs"][0] == pytest.approx([45.5], abs=1e-6)
    assert result == json.loads(headwise("attend", "--example", "waist", "--json").out)


def test_settings_parameters_negative_numbers_and_a_picture(headwise: Headwise) -> None:
    wide = headwise(
        "attend", "--example", "waist", "score.width=1000", "--json", "--plot", "new/a.png"
    )
    assert json.loads(wide.out)["outputs"][0] == pytest.approx([131 / 3], abs=1e-3)
    assert Path("new/a.png").read_bytes().startswith(b"\x89PNG")
    assert wide.err == "the picture: new/a.png\n"
    given = headwise(
        "attend",
        "--keys",
        "-1,2",
        "--values",
        "1,2",
        "--queries",
        "-1",
        "--score",
        "bilinear",
        "--parameter",
        "W=3",
        "--json",
    )
    assert json.loads(given.out)["scores"] == [[3.0, -6.0]]


def test_files_are_read(headwise: Headwise) -> None:
    Path("keys.csv").write_text("waist,chest\n51,70\n56,82\n", encoding="utf-8")
    Path("values.csv").write_text("40\n43\n", encoding="utf-8")
    answer = headwise(
        "attend",
        "--keys",
        "keys.csv",
        "--values",
        "values.csv",
        "--queries",
        "57,83",
        "--score",
        "dot",
        "--json",
    )
    assert json.loads(answer.out)["scores"] == [[8717.0, 9998.0]]
    assert "keys.csv: the first line, 'waist,chest', is taken for a heading" in answer.err
    Path("values.csv").write_text("40\nmany\n", encoding="utf-8")
    bad = headwise("attend", "--keys", "keys.csv", "--values", "values.csv", "--queries", "57,83")
    assert bad.status == 3
    assert "values.csv:2: 'many' is not a number" in bad.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--keys", "1"], "--values is missing; give --keys, --values and --queries"),
        (["--example", "waist", "--queries", "a few"], "--queries: 'a few' is not a number"),
        (
            ["--example", "waist", "--queries", "1,2;3,4"],
            "queries of 2 numbers and keys of 1 cannot be compared by score gaussian",
        ),
        (["--example", "waist", "--values", "1,2"], "3 keys and 2 values"),
        (["--example", "waist", "--parameter", "W"], "is not NAME=NUMBERS"),
        (["--example", "waist", "--parameter", "W=1"], "score gaussian has no parameter 'W'"),
        (["--example", "waist", "score.with=2"], "score.with"),
        (["--example", "waist", "--keys", "lost.csv"], "lost.csv: No such file"),
        (
            ["--example", "waist", "--plot", "a.pdf"],
            "'a.pdf' does not end in .png or .svg, which are the formats of pictures",
        ),
        (["--example", "waist", "--plot", "a"], "name it for example a.png"),
        (
            ["--example", "waist", "--values", "40,nan,48"],
            "--values: 'nan' is not a number up to 1e+12",
        ),
        (["--example", "waist", "--score", "dott"], "did you mean 'dot'?"),
    ],
)
def test_mistakes_get_one_sentence(headwise: Headwise, words: list[str], said: str) -> None:
    answer = headwise("attend", *words)
    assert answer.status == 2
    assert said in answer.err
    assert answer.out == ""
    assert headwise("attend", *words, "--lang", "zh").status == 2
