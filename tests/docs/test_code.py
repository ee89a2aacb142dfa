"""Documentation that runs: what a page tells its reader to type is typed here, and what it shows is
what comes out."""

import argparse
import contextlib
import difflib
import io
import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from headwise.cli import train
from headwise.cli.main import build_parser, main
from headwise.cli.options.parser import parse
from headwise.settings import read_yaml
from headwise.tasks.recipe import load_recipe, recipe_from
from headwise.tasks.translation.translator import Translator
from tests.docs.pages import ROOT, Page, taught_pages

# Their models are not made for the pages: tests/cli runs these commands.
LANGUAGE_MODELS = (
    "score",
    "predict",
    "generate",
    "classify",
    "tag",
    "arpa",
    "export",
    "senses",
)
QUICK = ("attend", "recipes", "schema", "describe", "translate", "evaluate")
"""Commands that are not only parsed but run: they take a moment and change nothing."""

TARGETS = set(
    re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
)


def _names(page: Page) -> str:
    return page.name


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize(
    "page",
    [page for page in taught_pages() if any(b.language == "python" for b in page.blocks)],
    ids=_names,
)
def test_python_runs_and_prints_what_is_shown(page: Page) -> None:
    namespace: dict[str, object] = {"__name__": "guide"}
    for block in page.blocks:
        if block.language != "python" or not block.is_run:
            continue
        printed = io.StringIO()
        code = compile("\n" * (block.line - 1) + block.text, page.name, "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if block.output is not None:
            given, shown = (
                printed.getvalue().rstrip().splitlines(),
                block.output.rstrip().splitlines(),
            )
            changes = "\n".join(
                difflib.unified_diff(shown, given, "the page shows", "the code prints", lineterm="")
            )
            assert given == shown, f"{page.name}:{block.line}\n{changes}"


@pytest.mark.parametrize("page", taught_pages(), ids=_names)
def test_commands_are_real(page: Page, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree("runs/demo", "runs/mine")  # as if every command before had been followed
    for line, command in page.commands():
        where = f"{page.name}:{line}: {' '.join(command)}"
        if command[0] == "make":
            assert set(command[1:]) <= TARGETS, where
            continue
        parsed = _parsed(command, where, capsys)
        _check_settings(parsed)
        if parsed.command in QUICK and getattr(parsed, "file", "") != "-":
            assert main(command[1:]) == 0, f"{where}\n{capsys.readouterr().err}"


@cache
def _parser() -> argparse.ArgumentParser:
    return build_parser()


def _parsed(
    command: list[str], where: str, capsys: pytest.CaptureFixture[str]
) -> argparse.Namespace:
    try:
        parsed = parse(_parser(), command[1:])
    except SystemExit:
        pytest.fail(f"{where}\n{capsys.readouterr().err}")
    if parsed.command == "train":
        train.check(parsed)  # finds the recipe of a run that is resumed without one
    return parsed


def _check_settings(parsed: object) -> None:
    """The recipe and the overrides a command names are valid."""
    overrides = getattr(parsed, "overrides", [])
    name = getattr(parsed, "recipe", None) or getattr(parsed, "model", None)
    if isinstance(name, list):  # the members of an ensemble
        name = name[0] if name else None
    if name is None or getattr(parsed, "command", None) in LANGUAGE_MODELS:
        return
    if Path(str(name)).is_dir():
        if overrides:
            Translator.load(str(name), device="cpu").settings(overrides)
    else:
        load_recipe(str(name), overrides)


@pytest.mark.parametrize("page", taught_pages(), ids=_names)
def test_recipes_are_valid(page: Page) -> None:
    for block in page.blocks:
        if (
            block.language == "yaml"
            and block.is_run
            and block.text.lstrip("# \n").startswith("task:")
        ):
            recipe_from(read_yaml(block.text, file=f"{page.name}:{block.line}"))


def test_a_wrong_command_would_be_noticed(workspace: Path) -> None:
    with pytest.raises(SystemExit):
        parse(build_parser(), ["translate", "--modle", "runs/demo/model"])
    with pytest.raises(ValueError, match="dimm"):
        _check_settings(parse(build_parser(), ["train", "my.yaml", "--run", "x", "model.dimm=3"]))
