"""`headwise arpa`: writes an n-gram model as an ARPA file for KenLM, SRILM and others."""

import argparse
import sys

from headwise.cli.options.model_paths import LanguageBundlePath
from headwise.cli.options.paths import NewOutput
from headwise.language import say


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "arpa",
        help=say("write an n-gram model as an ARPA file", "把 n 元语法模型写成 ARPA 文件"),
        description=say(
            "The same as `headwise export MODEL FILE.arpa`. ARPA is the text format of n-gram "
            "models that KenLM and SRILM read. To read an ARPA file, give it to score or predict "
            "as --model.\n\n  headwise arpa runs/ptb ptb.arpa.gz\n  headwise score --model "
            "ptb.arpa.gz 'the company said'",
            "与 `headwise export MODEL FILE.arpa` 相同。ARPA 是 n 元语法模型的文本形式，KenLM 与 "
            "SRILM 都能读取。反方向无需命令：score 与 predict 的 --model 可直接给 ARPA 文件。"
            "\n\n  headwise arpa runs/ptb ptb.arpa.gz\n  headwise score --model ptb.arpa.gz 'the "
            "company said'",
        ),
    )
    parser.add_argument(
        "model",
        type=LanguageBundlePath,
        metavar="MODEL",
        help=say("a bundle or run of n-grams", "n 元语法的模型或运行目录"),
    )
    parser.add_argument(
        "output",
        type=NewOutput,
        metavar="FILE",
        help=say(
            "e.g. model.arpa, model.arpa.gz or model.arpa.xz",
            "例如 model.arpa、model.arpa.gz 或 model.arpa.xz",
        ),
    )


def check(arguments: argparse.Namespace) -> None:
    from pathlib import Path

    from headwise.models.ngram.arpa import require_arpa

    require_arpa(Path(arguments.output))


def run(arguments: argparse.Namespace) -> int:
    from headwise.exporting.export import export_arpa

    path = export_arpa(arguments.model, arguments.output)
    sys.stdout.write(f"{path}\n")
    return 0
