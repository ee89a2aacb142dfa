"""`headwise translate` as a new user would run it: files, standard input, wishes, lines that are
too long, what is refused."""

import gzip
import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from io import BytesIO, StringIO
from pathlib import Path

import pytest

from tests.cli.conftest import Headwise
from tests.processes import Python

CONTENT = b"\xef\xbb\xbfThe cat sleeps.\r\n\r\nLaura has two dogs.\n\n  \nThe cat sleeps."


def test_translate_keeps_lines_and_order(
    headwise: Headwise, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("in.txt").write_bytes(CONTENT)
    Path("packed.txt.gz").write_bytes(gzip.compress(CONTENT))
    plain = headwise("translate", "--model", tiny_run / "model", "in.txt")
    assert plain.status == 0
    lines = plain.out.split("\n")
    assert len(lines) == 7
    assert [line == "" for line in lines] == [False, True, False, True, True, False, True]
    assert lines[0] == lines[5]
    assert headwise("translate", "--model", tiny_run, "packed.txt.gz").out == plain.out
    monkeypatch.setattr(
        sys,
        "stdin",
        type("Stdin", (), {"buffer": BytesIO(CONTENT), "isatty": lambda self: False})(),
    )
    assert headwise("translate", "--model", tiny_run).out == plain.out


def test_translate_as_json(headwise: Headwise, tiny_run: Path) -> None:
    Path("in.txt").write_bytes(CONTENT)
    answer = headwise("translate", "--model", tiny_run, "--json", "in.txt")
    entries = [json.loads(line) for line in answer.out.splitlines()]
    assert [entry["source"] for entry in entries] == [
        "The cat sleeps.",
        "",
        "Laura has two dogs.",
        "",
        "  ",
        "The cat sleeps.",
    ]
    assert entries[0]["alignment"]
    assert entries[0]["n_best"][0]["text"] == entries[0]["text"]
    assert entries[1] == {
        "source": "",
        "text": "",
        "score": 0.0,
        "n_best": [{"text": "", "score": 0.0, "log_probability": 0.0}],
        "alignment": [],
        "source_pieces": [],
        "target_pieces": [],
    }


def test_translate_with_wishes(headwise: Headwise, tiny_run: Path) -> None:
    Path("in.txt").write_text("The cat sleeps.\n\nLaura has two dogs.\n", encoding="utf-8")
    model = ("translate", "--model", tiny_run, "in.txt")
    several = headwise(*model, "--n-best", "3", "--set", "max_length.extra=5").out.splitlines()
    assert [line.split("\t")[0] for line in several] == ["1", "1", "1", "2", "3", "3", "3"]
    scores = [float(line.split("\t")[1]) for line in several[:3]]
    assert scores == sorted(scores, reverse=True)
    first = headwise(*model, "--prefix", "Die Katze").out.splitlines()
    assert first[0].startswith("Die Katze")
    required = headwise(*model, "--require", "Hund", "--set", "max_length.extra=9").out.splitlines()
    assert "Hund" in required[0]
    word = headwise(*model).out.split()[0]
    assert word not in headwise(*model, "--forbid", word).out.split()
    wide = headwise(*model, "--n-best", "9")
    assert wide.out == headwise(*model, "--n-best", "9", "--set", "size=9").out
    refused = headwise(*model, "--n-best", "9", "--set", "size=5")
    assert refused.status == 2
    assert (
        "num_best (9) cannot exceed the beam's size (5); set size=9 as well (headwise "
        "translate: --set size=9;"
    ) in refused.err
    assert wide.status == 0
    assert (
        "decoding.sizee: unknown key; did you mean 'size'?"
        in headwise(*model, "--set", "kind=beam", "--set", "sizee=3").err
    )


def test_translate_asks_at_a_terminal(
    headwise: Headwise, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = iter(["The cat sleeps.", ""])
    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"isatty": lambda self: True})())
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    answer = headwise("translate", "--model", tiny_run)
    assert answer.status == 0
    assert len(answer.out.splitlines()) == 1
    assert "en → de. Type a sentence; an empty line ends." in answer.err


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["none.txt"], 3, "there is no none.txt, none.txt.gz or none.txt.xz"),
        (
            ["--device", "cuda", "in.txt"],
            2,
            "the device cuda was asked for, but PyTorch sees no GPU",
        ),
        (
            ["--too-long", "refuse", "long.txt"],
            3,
            "long.txt:2: is longer than 65,536 bytes; put one sentence on a line",
        ),
        (
            ["--too-long", "refuse", "wide.txt"],
            3,
            "wide.txt:2: has 5,002 tokens, at most 2,048 are translated; split it",
        ),
    ],
)
def test_translate_refuses(
    words: list[str], status: int, message: str, headwise: Headwise, tiny_run: Path
) -> None:
    Path("in.txt").write_bytes(CONTENT)
    Path("long.txt").write_bytes(b"ok\n" + b"x" * 1_000_000 + b"\n")
    Path("wide.txt").write_text("ok\n" + "dog " * 2500 + "\n", encoding="utf-8")
    answer = headwise("translate", "--model", tiny_run, *words)
    assert (answer.status, message in answer.err) == (status, True), answer.err


def test_one_line_too_long_does_not_lose_the_others(headwise: Headwise, tiny_run: Path) -> None:
    Path("odd.en").write_text(
        f"The cat sleeps.\n{'The dog is old. ' * 400}\n{'x' * 70_000}\nLaura sings.\n",
        encoding="utf-8",
    )
    translate = ("translate", "--model", tiny_run, "odd.en")
    answer = headwise(*translate)
    lines = answer.out.splitlines()
    dog = headwise("translate", "--model", tiny_run, "--text", "The dog is old.").out.strip()
    assert (answer.status, len(lines), lines[2]) == (0, 4, "")
    assert lines[1] == " ".join([dog] * 400)
    assert (
        "headwise: note: odd.en:2: has 2,802 tokens, at most 2,048 are read at once; "
        "translated in 400 pieces\n"
    ) in answer.err
    assert (
        "headwise: note: odd.en:3: is longer than 65,536 bytes and is not read; its "
        "translation is left empty"
    ) in answer.err
    left_out = headwise(*translate, "--too-long", "empty", "--json")
    entries = [json.loads(line) for line in left_out.out.splitlines()]
    assert [entry.get("too_long") for entry in entries] == [None, "empty", "empty", None]
    assert [entry["text"] for entry in entries] == [lines[0], "", "", lines[3]]
    assert "odd.en:2: 有 2,802 个词元" in headwise("--lang", "zh", *translate).err


def test_a_wrong_model_is_told_before_a_wrong_text(headwise: Headwise) -> None:
    answer = headwise("translate", "--model", "runs/nope", "x")
    assert (answer.status, "runs/nope: does not exist" in answer.err) == (3, True)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_of_a_file_is_shown_on_a_terminal_while_translations_go_elsewhere(
    headwise: Headwise, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("in.txt").write_bytes(CONTENT)
    for words, is_shown in ((["in.txt"], True), (["--text", "The cat sleeps."], False)):
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        assert headwise("translate", "--model", tiny_run, *words).status == 0
        assert ("lines translated: 6 / 6" in stream.getvalue()) == is_shown
    monkeypatch.setattr(sys, "stderr", StringIO())
    assert headwise("translate", "--model", tiny_run, "in.txt").status == 0
    assert "lines translated" not in sys.stderr.getvalue()  # type: ignore[attr-defined]


def test_translations_reach_their_file_while_a_terminal_shows_progress(
    tiny_run: Path, tmp_path: Path
) -> None:
    """A real terminal: the library that draws the bar takes over standard output unless it is told
    not to."""
    lines = ["The cat sleeps.", "The dog is old.", "The bird sings."] * 3
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [
        sys.executable,
        "-P",
        "-m",
        "headwise",
        "translate",
        "--model",
        str(tiny_run),
        str(tmp_path / "in.txt"),
    ]
    ours, theirs = pty.openpty()
    with (tmp_path / "out.txt").open("wb") as out:
        process = Python(command, stdin=subprocess.DEVNULL, stdout=out, stderr=theirs)
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # what a terminal says when its last writer has left
            while part := os.read(ours, 4096):
                shown += part
        assert process.wait(60) == 0
    os.close(ours)
    assert b"9 / 9" in shown
    assert len((tmp_path / "out.txt").read_text(encoding="utf-8").splitlines()) == len(lines)


def test_another_search_than_the_models_own_is_told(headwise: Headwise, tiny_run: Path) -> None:
    model = ["translate", "--model", tiny_run, "--text", "The cat sleeps."]
    told = headwise(*model, "--n-best", "2")
    assert (
        "this model searches greedily, which has one candidate; --n-best searches by beam instead"
        in told.err
    )
    assert "该模型用贪心搜索" in headwise("--lang", "zh", *model, "--n-best", "2").err
    assert "searches" not in headwise(*model, "--n-best", "2", "--set", "kind=beam").err
    assert "searches" not in headwise(*model).err


def test_a_key_of_another_search_is_named(headwise: Headwise, tiny_run: Path) -> None:
    for order in (["sise=8"], ["sise=8", "kind=beam"], ["kind=beam", "sise=8"]):
        words = [word for one in order for word in ("--set", one)]
        assert headwise("translate", "--model", tiny_run, "--text", "a", *words).status == 2, order
    answer = headwise("translate", "--model", tiny_run, "--text", "a", "--set", "sise=8")
    assert (answer.status, "did you mean 'size' of kind: beam?" in answer.err) == (2, True), (
        answer.err
    )


def test_several_models_translate_together(headwise: Headwise, tiny_run: Path) -> None:
    """A model with itself is the model; evaluate measures what translate writes."""
    Path("in.en").write_text("The cat sleeps.\nThe dog is old.\n", encoding="utf-8")
    one, two = ("--model", tiny_run), ("--model", tiny_run, "--model", tiny_run / "model")
    alone = headwise("translate", *one, "in.en")
    for mean in ("probabilities", "logarithms"):
        both = headwise("translate", *two, "--mean", mean, "in.en")
        assert (both.status, both.out) == (0, alone.out), both.err
    Path("out.de").write_text(alone.out, encoding="utf-8")
    measured = headwise(
        "evaluate", *two, "--source", "in.en", "--reference", "out.de", "--json", "--against",
        tiny_run,
    )  # fmt: skip
    assert (measured.status, json.loads(measured.out or "{}").get("exact_match")) == (0, 1.0)
    missing = headwise("translate", *one, "--model", "nothing", "in.en")
    assert (missing.status, "nothing: does not exist" in missing.err) == (3, True)
