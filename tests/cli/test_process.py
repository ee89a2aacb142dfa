"""What only a process of its own shows: closed streams, a full device, bytes that are not UTF-8."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.importing.marian import write_marian
from tests.processes import shell_words

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A line of bash, in which `hw` is the command: in an interpreter of its own where its start
    depends on the environment."""
    python = shlex.join([sys.executable] if environment else shell_words())
    ended = subprocess.run(
        ["bash", "-c", line.replace("hw ", f"{python} -m headwise ", 1)],
        capture_output=True,
        check=False,
        timeout=120,
        env={**os.environ, "LANG": "en_US.UTF-8", **environment},
    )
    assert b"Traceback" not in ended.stderr, ended.stderr.decode()
    assert b"Exception ignored" not in ended.stderr, ended.stderr.decode()
    return ended


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", ">&- 2>&- <&-"])
def test_a_closed_stream_is_no_error(closed: str) -> None:
    assert shell(f"hw recipes {closed}").returncode == 0


def test_a_file_does_not_get_the_number_of_a_closed_stream() -> None:
    written = shell("hw attend --example waist --plot a.svg >&- 2>&- <&-")
    assert written.returncode == 0
    assert Path("a.svg").read_text(encoding="utf-8").endswith("</svg>\n")


def test_without_standard_input_there_is_nothing_to_translate(tiny_run: Path) -> None:
    ended = shell(f"hw translate --model {tiny_run} --device cpu <&-")
    assert (ended.returncode, ended.stdout) == (0, b""), ended.stderr.decode()


@pytest.mark.parametrize("words", ["--help", "--version", "train --help", "recipes"])
def test_what_cannot_be_written_is_said(words: str) -> None:
    full = shell(f"hw {words} > /dev/full")
    assert full.returncode == 1
    assert b"No space left on device" in full.stderr


@pytest.mark.parametrize("words", ["--help", "recipes"])
def test_a_reader_that_goes_away_is_no_error(words: str) -> None:
    ended = shell(f"hw {words} | head -n 0; exit ${{PIPESTATUS[0]}}")
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("option", ["--forbid", "--require", "--prefix"])
def test_phrases_that_are_not_utf8_are_refused(tiny_run: Path, option: str) -> None:
    said = "is not UTF-8 at character 1; give text in UTF-8"
    for phrase, environment in (("$'\\xff'", {}), ("\u559d", ASCII)):
        ended = shell(f"hw translate --model {tiny_run} --text hi {option} {phrase}", **environment)
        assert (ended.returncode, said in ended.stderr.decode()) == (2, True), ended.stderr
        assert ended.stdout == b""


def test_a_model_may_lie_under_a_name_that_is_not_utf8(tiny_run: Path) -> None:
    shell(f"cp -r {tiny_run}/model $'m\\xff'")
    plain = shell(f"hw translate --model {tiny_run} --device cpu --text hi")
    ended = shell("hw translate --model $'m\\xff' --device cpu --text hi")
    assert (ended.returncode, ended.stdout) == (0, plain.stdout), ended.stderr.decode()
    told = shell("hw describe $'m\\xff'")
    assert told.returncode == 0, told.stderr.decode()


def test_a_distilled_corpus_may_have_a_name_that_is_not_utf8(tiny_run: Path) -> None:
    Path(os.fsdecode(b"a\xff.en")).write_text("The dog is old.\n", encoding="utf-8")
    settings = "data.filter.max_ratio=null --set kind=greedy --set at_limit=end --device cpu"
    ended = shell(f"hw distil {tiny_run} --source $'a\\xff.en' --output $'d\\xff' {settings}")
    assert ended.returncode == 0, ended.stderr.decode()
    assert b"the corpus: d\\udcff" in ended.stdout
    again = shell(
        f"hw distil {tiny_run} --json --source $'a\\xff.en' --output $'d\\xff' {settings}"
    )
    assert json.loads(again.stdout)["corpora"] == ["a\\xff.en"]


def test_lists_that_are_said_to_be_shared_and_are_not(tmp_path: Path) -> None:
    config = write_marian(tmp_path / "mars", separate=True) / "config.json"
    text = config.read_text(encoding="utf-8")
    old = '"share_encoder_decoder_embeddings": false'
    assert old in text
    config.write_text(text.replace(old, old.replace("false", "true")), encoding="utf-8")
    ended = shell("hw import mars imported")
    assert ended.returncode == 3
    assert b"use the files of one model" in ended.stderr
    assert not Path("imported").exists()
