"""The examples of at most twenty statements run as they are and say what they should."""

import ast
import re
import runpy
import sys
from pathlib import Path

import pytest

from tests.tasks.tiny import OVERRIDES

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(
    name: str, *words: object, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


def test_there_are_some_and_none_is_longer_than_twenty_statements() -> None:
    paths = sorted(EXAMPLES.glob("*.py"))
    assert len(paths) >= 5
    for path in paths:
        text = path.read_text(encoding="utf-8")
        statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
        assert len(statements) - 1 <= 20, path.name  # its docstring is one, too


def test_attention_by_hand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run("attention_by_hand", capsys=capsys, monkeypatch=monkeypatch)
    assert "it attends to animal 0.98" in said
    assert "animal attends to animal 1.00  street 0.00" in said


def test_search(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("search", capsys=capsys, monkeypatch=monkeypatch)
    assert [line.split()[0] for line in said.splitlines()] == ["esiwdaeh", "noitnetta"]


def test_own_loop(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("own_loop", capsys=capsys, monkeypatch=monkeypatch)
    rights = [float(share) for share in re.findall(r"right ([\d.]+)%", said)]
    assert rights[0] < 30 < 90 < rights[-1]


def test_word_neighbours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run("word_neighbours", capsys=capsys, monkeypatch=monkeypatch).splitlines()
    assert set(said[0].split()[3:9:2]) == {"cat", "horse", "cow"}
    assert set(said[1].split()[3:9:2]) == {"axe", "drill", "plane"}


def test_train_and_translate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = run(
        "train_pocket",
        tmp_path / "run",
        *OVERRIDES,
        "text.size=800",
        capsys=capsys,
        monkeypatch=monkeypatch,
    )
    assert f"the model: {tmp_path / 'run' / 'model'}" in said
    said = run(
        "translate",
        tmp_path / "run" / "model",
        "The cat sleeps.",
        capsys=capsys,
        monkeypatch=monkeypatch,
    )
    assert said.startswith("The cat sleeps.  →  ")
    assert "second best:" in said
    assert "←" in said


def test_count_words(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("count_words", capsys=capsys, monkeypatch=monkeypatch)
    assert "more natural: The dog is old." in said
    perplexities = {
        tuple(line.split()[1:3]): float(line.split()[-1])
        for line in said.splitlines()
        if "perplexity" in line
    }
    assert perplexities["3,", "add_k:"] > perplexities["2,", "add_k:"]
    assert perplexities["3,", "kneser_ney:"] < perplexities["2,", "kneser_ney:"]


def test_senses_of_a_word(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = run("senses_of_a_word", tmp_path, capsys=capsys, monkeypatch=monkeypatch).splitlines()
    assert said[0] == "layer 0: 50 % of the senses found"
    assert int(said[2].split()[2]) > 90


def test_language_models(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run("language_models", capsys=capsys, monkeypatch=monkeypatch).splitlines()
    assert [line.split()[0] for line in said] == ["neural_ngram", "recurrent", "decoder_only"]
    assert all("is -" in line for line in said)


def test_read_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = run("read_first", tmp_path, capsys=capsys, monkeypatch=monkeypatch).splitlines()
    assert said == ["as it was: encoder.blocks.0", "foul fine"]
