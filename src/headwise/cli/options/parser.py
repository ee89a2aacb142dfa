"""An argparse parser with help and errors in English and Chinese.

It keeps the line breaks of examples and suggests the nearest known name. Options cannot be
abbreviated, so that a new option never changes the meaning of an old script. `--lang` may stand
anywhere.
"""

import argparse
import contextlib
import difflib
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from headwise.cli.options.paths import Output
from headwise.cli.terminal.wrapping import wrap, write_line
from headwise.language import say

OVERRIDE = r"\s*[\w.]+\s*=.*"

# argparse's own messages in Chinese; messages that are not listed stay English.
_CHINESE = (
    (r"the following arguments are required: (.*)", r"缺少必需的参数：\1"),
    (r"unrecognized arguments: (.*)", r"无法识别的参数：\1"),
    (
        r"argument (.*?): invalid choice: (.*?) \(choose from (.*)\)",
        r"参数 \1：没有 \2 这个选择（可选：\3）",
    ),
    (r"argument (.*?): expected one argument", r"参数 \1：需要一个值"),
    (r"argument (.*?): (.*)", r"参数 \1：\2"),
)


LARGEST_COUNT = 2**31 - 1


def positive(text: str) -> int:
    """The type of options that are whole numbers from 1 on, which any library can count with."""
    with contextlib.suppress(ValueError):
        if 1 <= (number := int(text)) <= LARGEST_COUNT:
            return number
    raise argparse.ArgumentTypeError(
        say(
            f"{text!r:.60} is not a whole number from 1 on, at most {LARGEST_COUNT:,}; give one "
            "such as 4",
            f"{text!r:.60} 不是正整数，或大于 {LARGEST_COUNT:,}；请给出例如 4",
        )
    )


def override(text: str) -> str:
    """The type of changes of a recipe; the recipe itself checks whether the key exists."""
    if re.fullmatch(OVERRIDE, text, re.DOTALL):
        return text
    raise argparse.ArgumentTypeError(
        say(
            f"{text!r} is not an override; write key.path=value, e.g. training.steps=100",
            f"{text!r} 不是覆盖项；请写成 键.路径=值，例如 training.steps=100",
        )
    )


def add_computing(parser: argparse.ArgumentParser) -> None:
    """Options for device and precision."""
    parser.add_argument(
        "--device",
        default="auto",
        choices=("auto", "cpu", "cuda"),
        help=say("auto, cpu or cuda", "auto、cpu 或 cuda"),
    )
    parser.add_argument(
        "--precision",
        default="auto",
        choices=("auto", "fp32", "fp16", "bf16", "int8"),
        help=say(
            "precision of matrix products: auto gives the results of fp32; fp16 (weights), bf16 "
            "and int8 are faster and round more; with int8 a translation may depend on the other "
            "sentences of its batch",
            "乘积所用的数：auto 保持 fp32 的结果；fp16（权重）、bf16、int8 更快、舍入更多；用 "
            "int8 时译文可能受同批句子影响",
        ),
    )


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """The option that uses the weights of a run without a model."""
    parser.add_argument(
        "--checkpoint",
        type=checkpoint_name,
        metavar="best|last|average[:N]",
        help=say(
            "use the best or the last checkpoint of a run, finished or not, or the mean of the "
            "weights of its last N checkpoints (without N: of all that it keeps)",
            "使用运行（无论是否完成）最好的（best）或最近的（last）检查点，"
            "或最近 N 个检查点的权重平均（average；不给 N 时取保留的全部）",
        ),
    )


def checkpoint_name(text: str) -> str:
    """The value of --checkpoint."""
    word, _, count = text.partition(":")
    if text not in ("best", "last", "average") and (
        word != "average" or not count.isdecimal() or int(count) < 2
    ):
        raise argparse.ArgumentTypeError(
            say(
                f"{text!r} was given; give best, last, average, or average:N with N of 2 or more",
                f"给出了 {text!r}；请给 best、last、average，或 average:N（N 不小于 2）",
            )
        )
    return text


def add_mean(parser: argparse.ArgumentParser) -> None:
    """The option for what is averaged when several models translate together."""
    parser.add_argument(
        "--mean",
        choices=("probabilities", "logarithms"),
        default="probabilities",
        help=say(
            "what several models average: their probabilities (default), or the logarithms of "
            "these, so that no model rules the word out",
            "多个模型对什么取平均：概率（probabilities，默认），"
            "或概率的对数（logarithms，任一模型都不排斥的词才得高分）",
        ),
    )


class HelpFormatter(argparse.HelpFormatter):
    """Wraps paragraphs and leaves indented lines (examples) unchanged."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines = []
        for line in text.splitlines():
            lines += [line] if line.startswith(" ") else wrap(line, width)
        return "\n".join(indent + line for line in lines)

    def _split_lines(self, text: str, width: int) -> list[str]:
        """Wrap the help of an option. Chinese is broken between characters, which are two columns
        wide.
        """
        return wrap(" ".join(text.split()), width)

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(
            usage, actions, groups, say("usage: ", "用法：") if prefix is None else prefix
        )


class Parser(argparse.ArgumentParser):
    """The parser of the program, of each command and of each action."""

    def __init__(self, *, prog: str, description: str, epilog: str | None = None) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            add_help=False,
            allow_abbrev=False,
            formatter_class=HelpFormatter,
        )
        self._positionals.title = say("what to give", "参数")
        self._optionals.title = say("options", "选项")
        self.add_argument("-h", "--help", action="help", help=say("show this help", "显示本帮助"))
        self.add_argument(
            "--lang",
            choices=("en", "zh"),
            default=argparse.SUPPRESS,
            help=say("language of messages (default: from LANG)", "消息语言（默认取自 LANG）"),
        )

    def _add_action(self, action: Any) -> Any:
        """Add an argument; the help of an output also says that missing directories are made."""
        if isinstance(action.type, type) and issubclass(action.type, Output):
            action.help += action.type.note()
        return super()._add_action(action)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write help, usage or version; argparse would ignore a full disk."""
        stream = sys.stderr if file is None else file
        stream.write(message or "")
        stream.flush()

    def error(self, message: str, *, meant: str = "") -> NoReturn:
        """Print the error and a guess of what was `meant`, and exit with status 2."""
        self.print_usage(sys.stderr)
        hint = say(f"see `{self.prog} --help`", f"参见 `{self.prog} --help`")
        said = say(message, _in_chinese(message))
        write_line(
            f"{self.prog}: {said}{meant or self._guess(message)}{say('; ', '；')}{hint}", sys.stderr
        )
        self.exit(2)

    def _guess(self, message: str) -> str:
        """A suggestion for an unknown word: an argument that takes no option name, or the nearest
        known word.
        """
        unknown = re.search(r"(?:unrecognized arguments:|invalid choice:) '?([^\s',]+)", message)
        if unknown is None:
            return ""
        word = unknown[1].split("=")[0]
        for name in (str(action.metavar) for action in self._actions if not action.option_strings):
            if word == f"--{name.lower()}":
                given = f"`{self.prog} {name}`"
                return say(
                    f"; give it without {word}: {given}", f"；请直接给出，不加 {word}：{given}"
                )
        near = self._nearest(word)
        return say(f"; did you mean {near!r}?", f"；是否想写 {near!r}？") if near else ""

    def _nearest(self, word: str) -> str | None:
        """The option or choice most like a word. Dashes are not compared: with them `--step` would
        be like `--help`.
        """
        known = [option for action in self._actions for option in action.option_strings]
        known += [str(choice) for action in self._actions for choice in action.choices or ()]
        bare = {name.lstrip("-"): name for name in reversed(known)}
        near = difflib.get_close_matches(word.lstrip("-"), bare, n=1)
        return bare[near[0]] if near else None


def _in_chinese(message: str) -> str:
    for pattern, chinese in _CHINESE:
        if re.fullmatch(pattern, message):
            return re.sub(pattern, chinese, message)
    return message


def name_options(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The options as the user writes them, by argparse's `dest`: --source, or FILE for a positional
    argument.
    """
    return {
        action.dest: (*action.option_strings, str(action.metavar or action.dest))[0]
        for action in parser._actions
    }


def find_leaf(parser: argparse.ArgumentParser, given: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the command or action that the given words lead to."""
    for word in given:
        actions = [
            action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
        ]
        if actions and word in actions[0].choices:
            parser = actions[0].choices[word]
    return parser


def _name_override(leaf: Parser, given: Sequence[str], word: str) -> str:
    """The override that was meant by an option: `training.steps=20` for `--steps 20`, if recipes
    have such a key, and for `--step 20`, if no option of the command is more like it.
    """
    if not any(action.dest == "overrides" for action in leaf._actions):
        return ""
    from headwise.tasks.recipe_files import (
        propose_nearest_overrides,
        propose_overrides,
        task_of_recipe,
    )

    option, _, value = word.partition("=")
    after = list(given[given.index(word) + 1 :])
    value = value or (
        after[0] if after and not after[0].startswith("-") and "=" not in after[0] else "…"
    )
    task = task_of_recipe(given[1:])
    overrides = propose_overrides(option, value, task=task)
    if not overrides and leaf._nearest(option) is None:
        overrides = propose_nearest_overrides(option, value, task=task)
    if not overrides:
        return ""
    meant = say(" or ", " 或 ").join(overrides)
    return say(
        f"; a value of the recipe is changed without dashes: {meant}",
        f"；修改配方中的值不加横线：{meant}",
    )


def parse(parser: argparse.ArgumentParser, given: Sequence[str]) -> argparse.Namespace:
    """Parse with overrides in any position: argparse takes positional arguments only in one piece,
    but `key.path=value` may also follow options.

    Unknown options are reported before missing ones, because in `--modle` the mistake is the
    spelling and not a missing `--model`.
    """
    leaf = find_leaf(parser, given)
    known = {
        option for action in (*parser._actions, *leaf._actions) for option in action.option_strings
    }
    for word in given[: given.index("--")] if "--" in given else given:
        if word.startswith("--") and " " not in word and word.partition("=")[0] not in known:
            assert isinstance(leaf, Parser)
            leaf.error(f"unrecognized arguments: {word}", meant=_name_override(leaf, given, word))
    parsed, rest = parser.parse_known_args(given)
    takes_overrides = any(action.dest == "overrides" for action in leaf._actions)
    unknown = [word for word in rest if word.startswith("-") or not takes_overrides]
    if unknown:
        leaf.error(f"unrecognized arguments: {' '.join(unknown)}")
    for action in leaf._actions:
        if rest and action.dest == "overrides":
            try:
                parsed.overrides = [
                    *parsed.overrides,
                    *(leaf._get_value(action, word) for word in rest),
                ]
            except argparse.ArgumentError as error:
                leaf.error(str(error))
    return parsed
