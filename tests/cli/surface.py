"""The surface of the command line as text: every command, option, metavar and help, in both
languages.

Written from the parsers themselves and not from the printed help, whose layout differs between
Python versions. `python -m tests.cli.surface` writes it anew to surface.txt.
"""

import argparse
from pathlib import Path

from headwise.cli.main import build_parser
from headwise.language import use_language

FILE = Path(__file__).with_name("surface.txt")
HEADER = (
    "# What users type and read. A change here is a change for them: look at the difference before "
    "you commit it.\n"
    "# Written by: PYTHONPATH=src:. .venv/bin/python -m tests.cli.surface\n"
)


def describe(parser: argparse.ArgumentParser) -> list[str]:
    lines = [
        f"== {parser.prog}",
        *(parser.description or "").splitlines(),
        *(parser.epilog or "").splitlines(),
        "",
    ]
    children: list[argparse.ArgumentParser] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            lines += [f"{name}\n    {helps[name]}" for name in action.choices]
            children += action.choices.values()
            continue
        name = ", ".join(action.option_strings) or str(action.metavar or action.dest)
        marks = (
            []
            if not action.option_strings or action.nargs == 0
            else [str(action.metavar or "|".join(action.choices or ()))]
        )
        marks += ["required"] if action.required and action.option_strings else []
        marks += [f"nargs={action.nargs}"] if action.nargs not in (None, 0) else []
        marks += (
            [f"default={action.default}"]
            if action.default not in (None, False, [], argparse.SUPPRESS)
            else []
        )
        lines.append(" ".join([name, *marks]) + f"\n    {action.help}")
    for child in children:
        lines += ["", *describe(child)]
    return lines


def write_surface() -> str:
    text = HEADER
    for language in ("en", "zh"):
        use_language(language)  # type: ignore[arg-type]
        text += "\n" + "\n".join(describe(build_parser())) + "\n"
    use_language(None)
    return text


if __name__ == "__main__":
    FILE.write_text(write_surface(), encoding="utf-8")
