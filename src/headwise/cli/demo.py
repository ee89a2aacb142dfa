"""`headwise demo`: trains a small translator in a few minutes, then uses it."""

import argparse
import json
import sys

from headwise.cli.options.paths import OutputDirectory
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "demo",
        help=say(
            "train a small translator in four minutes and use it",
            "四分钟训练一个小翻译模型并使用它",
        ),
        description=say(
            "Trains a small Transformer on the built-in pocket corpus (English, Chinese, German; "
            "no download), measures it on sentences and combinations it never saw, translates, "
            "and draws what it attends to.\n\n  headwise demo\n  headwise demo --pair zh-en --run "
            "runs/demo-zh-en",
            "在自带的袖珍语料（英、中、德，无需下载）上训练一个小 Transformer，"
            "在未见过的句子与组合上评测、翻译，并画出注意力。\n\n  headwise demo\n  headwise demo "
            "--pair zh-en --run runs/demo-zh-en",
        ),
    )
    parser.add_argument(
        "--pair",
        default="en-de",
        metavar="en-de",
        help=say(
            "source and target: any two of en, zh, de", "源语言与目标语言：en、zh、de 任取两种"
        ),
    )
    parser.add_argument(
        "--run",
        default="runs/demo",
        type=OutputDirectory,
        metavar="DIR",
        help=say("directory of the run (default runs/demo)", "运行目录（默认 runs/demo）"),
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help=say(
            "train again even if DIR holds a finished demo", "即使 DIR 中已有完成的演示也重新训练"
        ),
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=say(
            "train a tenth as long, to see how it works; the quality is low",
            "只训练十分之一：看过程，不看质量",
        ),
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help=say("print the results as JSON, without questions", "以 JSON 输出结果，不提问"),
    )


def check(arguments: argparse.Namespace) -> None:
    from headwise.pocket.language_pair import split_pair

    split_pair(arguments.pair)


def run(arguments: argparse.Namespace) -> int:
    from headwise.cli.terminal.demo_report import print_demo
    from headwise.cli.terminal.display import TrainingDisplay
    from headwise.cli.translate import converse
    from headwise.demo import run_demo

    with TrainingDisplay() as display:
        result = run_demo(
            arguments.pair,
            run=arguments.run,
            fresh=arguments.fresh,
            quick=arguments.quick,
            events=display,
        )
    if arguments.json:
        sys.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) + "\n")
        return 0
    print_demo(result)
    if sys.stdin.isatty() and sys.stdout.isatty():
        return converse(result.translator)
    return 0
