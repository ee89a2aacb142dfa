"""The parser, the list of commands, and the one place where errors become messages and exit statuses.

Exit status: 0 done · 1 our failure · 2 the caller's mistake · 3 bad or damaged data · 130/143 after a saved stop.
Results go to standard output, progress and messages to standard error. Nothing heavy is imported before a command
is known, so that `--help` answers at once.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from headwise import __version__
from headwise.errors import HeadwiseError
from headwise.language import say, use_language

COMMANDS = ("demo", "train", "translate", "evaluate", "describe", "doctor", "data", "recipes", "schema")


class Parser(argparse.ArgumentParser):
    """argparse that suggests the nearest command or option."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.print_usage(sys.stderr)
        hint = say(f"see `{self.prog} --help`", f"参见 `{self.prog} --help`")
        self.exit(2, f"{self.prog}: {_with_suggestion(message, self)}; {hint}\n")


def _with_suggestion(message: str, parser: argparse.ArgumentParser) -> str:
    import difflib
    import re

    known = [option for action in parser._actions for option in action.option_strings]
    for action in parser._actions:
        known.extend(str(choice) for choice in action.choices or ())
    unknown = re.findall(r"(?:unrecognized arguments:|invalid choice:) '?([^\s',]+)", message)
    near = difflib.get_close_matches(unknown[0].split("=")[0], known, n=1) if unknown else []
    return f"{message}{say('; did you mean ', '；是否想写 ')}{near[0]!r}" if near else message


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="headwise",
        description=say(
            "From attention to a working Transformer: train, measure, look into and use your own translator.",
            "从注意力到可用的 Transformer：训练、评测、观察并使用自己的翻译模型。",
        ),
        epilog=say(
            "First time here?  headwise demo      Your own corpus?  headwise train --help",
            "初次使用？ headwise demo      自己的语料？ headwise train --help",
        ),
    )
    parser.add_argument("--version", action="version", version=f"headwise {__version__}")
    parser.add_argument(
        "--lang",
        choices=("en", "zh"),
        help=say("language of messages (default: from LANG)", "消息语言（默认取自 LANG）"),
    )
    commands = parser.add_subparsers(dest="command", metavar=say("COMMAND", "命令"), parser_class=Parser)
    for name in COMMANDS:
        import_module(f"headwise.cli.{name}").add_parser(commands)
    return parser


def _language_asked(arguments: Sequence[str]) -> None:
    """`--lang` decides the language of the help itself, so it is looked at before the parser is built."""
    for number, argument in enumerate(arguments):
        value = argument.removeprefix("--lang=") if argument.startswith("--lang=") else None
        if argument == "--lang" and number + 1 < len(arguments):
            value = arguments[number + 1]
        if value in ("en", "zh"):
            use_language(value)  # type: ignore[arg-type]


def _parse(parser: argparse.ArgumentParser, given: Sequence[str]) -> argparse.Namespace:
    """argparse takes positionals in one piece only; `key.path=value` may also stand behind options."""
    parsed, rest = parser.parse_known_args(given)
    unknown = [argument for argument in rest if argument.startswith("-") or not hasattr(parsed, "overrides")]
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if rest:
        parsed.overrides = [*parsed.overrides, *rest]
    return parsed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _language_asked(given)
    parser = build_parser()
    parsed = _parse(parser, given)
    if parsed.command is None:
        parser.print_help()
        return 0
    try:
        return import_module(f"headwise.cli.{parsed.command}").run(parsed) or 0
    except HeadwiseError as error:
        _complain(str(error))
        return error.exit_status
    except KeyboardInterrupt:
        _complain(say("interrupted", "已中断"))
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`headwise … | head`): not an error, but Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except PermissionError as error:
        _complain(
            say(
                f"{error.filename}: no permission; use a place you may write to, or change its permissions",
                f"{error.filename}：没有权限；请换一个可写的位置，或修改其权限",
            )
        )
        return 2
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        _complain(where + say(f"{error.strerror}; nothing more was written", f"{error.strerror}；没有写入更多内容"))
        return 1


def _complain(message: str) -> None:
    sys.stderr.write(f"headwise: {say('error', '错误')}: {message}\n")
