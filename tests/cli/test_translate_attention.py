"""`headwise translate --attention`: what every layer looked at, of any kernel, in a file."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Headwise
from tests.tasks.tiny import train_tiny

SENTENCE = ("--text", "The dog is old.")


@pytest.fixture(scope="module")
def odd_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hashes below, sums above, summaries between: nobody forms a table of weights."""
    directory = tmp_path_factory.mktemp("runs") / "odd"
    changes = (
        "model.encoder.attention={kind: reformer, num_buckets: 4, bucket_size: 3}",
        "model.decoder.attention={kind: linear}",
        "model.decoder.cross_attention={kind: linformer, rank: 5, max_length: 64}",
        "training.steps=2",
        "data.valid=null",
        "data.test=null",
    )
    train_tiny(directory, changes)
    return directory


def test_every_map_of_any_kernel(headwise: Headwise, odd_run: Path) -> None:
    plain = headwise("translate", "--model", odd_run, *SENTENCE)
    answer = headwise("translate", "--model", odd_run, *SENTENCE, "--attention", "a.json")
    assert (answer.status, answer.out) == (0, plain.out)
    assert answer.err == "attention: a.json\n"
    (trace,) = json.loads(Path("a.json").read_text(encoding="utf-8"))["traces"]
    maps = {entry["name"]: np.array(entry["weights"]) for entry in trace["maps"]}
    assert sorted(maps) == [
        "decoder.0.cross",
        "decoder.0.self",
        "decoder.1.cross",
        "decoder.1.self",
        "encoder.0.self",
    ]
    assert trace["text"] + "\n" == answer.out
    assert np.abs(maps["encoder.0.self"].sum(-1) - 1).max() < 1e-4
    assert np.triu(maps["decoder.1.self"][0], 1).max() == 0
    assert maps["decoder.0.cross"].min() < 0, "summaries subtract"
    for ending, first in ((".html", b"<!doctype html>"), (".png", b"\x89PNG")):
        assert (
            headwise("translate", "--model", odd_run, *SENTENCE, "--attention", f"a{ending}").status
            == 0
        )
        assert Path(f"a{ending}").read_bytes().startswith(first)


def test_several_sentences_and_empty_lines(headwise: Headwise, tiny_run: Path) -> None:
    Path("in.txt").write_text("The dog is old.\n\nThe cat sleeps.\n", encoding="utf-8")
    answer = headwise("translate", "--model", tiny_run, "in.txt", "--attention", "a.json")
    assert answer.status == 0
    assert len(answer.out.splitlines()) == 3
    traces = json.loads(Path("a.json").read_text(encoding="utf-8"))["traces"]
    assert [trace["source"] for trace in traces] == ["The dog is old.", "The cat sleeps."]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--attention", "a.svg", *SENTENCE], "'a.svg' does not end in .html, .png, .json"),
        (["--attention", "a.png", *SENTENCE, *SENTENCE], "a picture shows one sentence"),
        (["--attention", "a.html", "--text", " "], "no sentence whose attention could be shown"),
        (["in.txt", *SENTENCE], "--text and the file in.txt were both given"),
    ],
)
def test_what_makes_no_sense_is_refused(
    words: list[str], message: str, headwise: Headwise, tiny_run: Path
) -> None:
    Path("in.txt").write_text("x\n", encoding="utf-8")
    answer = headwise("translate", "--model", tiny_run, *words)
    assert answer.status == 2
    assert message in answer.err


def test_a_terminal_is_asked_for_a_text(
    headwise: Headwise, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    answer = headwise("translate", "--model", tiny_run, "--attention", "a.html")
    assert answer.status == 2
    assert "give the sentence with --text" in answer.err
