"""The head of a recipe runs as written: its commands are real, and they fetch every corpus that the
recipe reads."""

import re
import shlex
from pathlib import Path

import pytest

from headwise.cli.main import build_parser
from headwise.cli.options.parser import parse
from headwise.data.known.corpora import find_corpus
from headwise.tasks.recipe import load_recipe
from tests.docs.pages import ROOT

RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))


def commands_of(text: str) -> list[list[str]]:
    """Lines of the head that begin with headwise, joined where they go on, without what is said
    beside them."""
    head = "\n".join(line[1:].strip() for line in text.splitlines() if line.startswith("#"))
    lines = [
        line for line in head.replace("\\\n", " ").splitlines() if line.startswith("headwise ")
    ]
    return [shlex.split(re.split(r"\s{5,}", line)[0])[1:] for line in lines]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_head_runs_as_written(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, fetched, trained = path.read_text(encoding="utf-8"), set(), []
    for command in commands_of(text):
        try:
            parsed = parse(build_parser(), command)
        except SystemExit:
            pytest.fail(f"{' '.join(command)}\n{capsys.readouterr().err}")
        if parsed.command == "data":
            fetched |= {find_corpus(name).name for name in parsed.names}
        if parsed.command == "train":
            load_recipe(parsed.recipe, parsed.overrides)
            trained.append(parsed.recipe)
    assert path.stem in trained
    assert set(re.findall(r"(?:known:|name: )([a-z0-9-]+)/", text)) <= fetched, (
        "what is read is fetched"
    )
    if start := re.search(r"start_from: runs/(\S+?)[,}\s]", text):
        assert re.search(rf"train \S+ --run runs/{start[1]}\b", text), "what it starts from is made"
