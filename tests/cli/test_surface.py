"""Commands, options and their help are pinned: `python -m tests.cli.surface` writes what is
compared here."""

import re

import pytest

from headwise.cli.main import COMMANDS, build_parser
from headwise.cli.options.parser import find_leaf
from headwise.language import use_language
from tests.cli.surface import FILE, write_surface


def test_commands_options_and_help_are_the_pinned_ones() -> None:
    assert write_surface() == FILE.read_text(encoding="utf-8"), (
        "if it is meant: python -m tests.cli.surface"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_by_an_example_in_both_languages(command: str) -> None:
    texts = {}
    for language in ("en", "zh"):
        use_language(language)  # type: ignore[arg-type]
        texts[language] = find_leaf(build_parser(), [command]).format_help()
    examples = {
        language: re.findall(rf"^  .*headwise {command}.*", text, re.M)
        for language, text in texts.items()
    }
    assert examples["en"]
    assert examples["en"] == examples["zh"]
    assert re.search("[\u4e00-\u9fff]", texts["zh"])
    assert not re.search("[\u4e00-\u9fff]", texts["en"])
    assert texts["zh"].startswith("用法：")
    assert "options" not in texts["zh"]


def test_both_languages_have_the_same_options() -> None:
    english, chinese = (
        part for part in FILE.read_text(encoding="utf-8").split("== headwise\n")[1:]
    )

    def names(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.startswith(("-", "== "))]

    assert names(english) == names(chinese)
