"""`headwise senses` as a user gives it."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from headwise.data.labels.word_senses import Occurrence
from headwise.models.vector_space import VectorSpace
from headwise.tasks.word_vectors.bundle import save_word_vectors
from tests.cli.conftest import Headwise
from tests.tasks.pretraining.test_senses import occurrences


def _write(path: Path, rows: Sequence[Occurrence]) -> Path:
    lines = [
        "\t".join([one.word, one.sense, str(one.position), " ".join(one.sentence)]) for one in rows
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def given(tmp_path: Path) -> list[object]:
    save_word_vectors(tmp_path / "words", VectorSpace(["bank"], np.ones((1, 3))))
    train, test = (
        _write(tmp_path / f"{key}.tsv", occurrences(count, key))
        for count, key in ((100, 1), (40, 2))
    )
    return ["senses", "--model", tmp_path / "words", "--train", train, "--test", test]


def test_a_static_vector_is_at_chance(
    headwise: Headwise, given: list[object], tmp_path: Path
) -> None:
    said = headwise(*given, "--plot", tmp_path / "bank.png")
    assert said.status == 0
    assert "words (static)\t0\t50.0" in said.out
    assert "bank: river / money\t50.0" in said.out or "bank: money / river\t50.0" in said.out
    assert (tmp_path / "bank.png").is_file()
    found = json.loads(headwise(*given, "--word", "bank", "--json").out)
    assert found["hard_pairs"] == {"words (static)": [50.0]}
    assert found["left_out"] == {"train": 0, "test": 0}


def test_what_is_wrong_is_said(headwise: Headwise, given: list[object], tmp_path: Path) -> None:
    unknown = headwise(*given, "--word", "crane")
    assert unknown.status == 2
    assert "has no word 'crane'" in unknown.err
    twice = headwise(*given, "--model", tmp_path / "words", "--untrained")
    assert twice.status == 2
    assert "two models have the same name" in twice.err
    (tmp_path / "bad.tsv").write_text("bank\tmoney\n", encoding="utf-8")
    bad = headwise(*given[:3], "--train", tmp_path / "bad.tsv")
    assert bad.status == 3
    assert "bad.tsv:1" in bad.err
    assert (
        headwise("senses", "--model", tmp_path, "--train", given[4], "--test", given[6]).status == 3
    )


def test_unseen_senses_are_counted_and_never_nan(
    headwise: Headwise, given: list[object], tmp_path: Path
) -> None:
    with Path(str(given[6])).open("a", encoding="utf-8") as file:
        file.write("bank\tblood\t0\tbank of blood\n" * 3 + "seal\tanimal\t0\tseal\n")
    said = headwise(*given, "--json")
    found = json.loads(said.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert found["unlearnt"] == 4
    assert "left out: 4 test occurrences" in said.err
    _write(tmp_path / "strange.tsv", [Occurrence("bank", "blood", 0, ("bank",))])
    nothing = headwise(*given[:6], tmp_path / "strange.tsv", "--json")
    assert (nothing.status, nothing.out) == (2, "")
    assert "none has a sense that the training part shows" in nothing.err


def test_a_picture_that_cannot_be_drawn_is_refused_first(
    headwise: Headwise, given: list[object]
) -> None:
    """Before any file is read: the other arguments do not matter yet."""
    for name in ("x.bmp", "x.html", "x"):
        said = headwise(*given[:3], "--train", "nowhere.tsv", "--plot", name)
        assert said.status == 2
        assert "does not end in .png or .svg" in said.err
