"""`headwise classify`: gives a whole text one label, with the probability of every class."""

import argparse
import sys
from typing import TYPE_CHECKING

from headwise.cli.label_commands import add_arguments, check, run_labelling
from headwise.cli.options.model_paths import ClassifierPath
from headwise.language import say

__all__ = ["add_parser", "check", "run"]

if TYPE_CHECKING:
    from headwise.tasks.labels.labeller import LabelledAnswer


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "classify",
        help=say("name the class of a text", "判断文本的类别"),
        description=say(
            "Classify each text with a trained classifier and print the probability, or measure "
            "its accuracy.\n\n  headwise classify --model runs/sst2 'a film worth seeing'\n  "
            "headwise classify --model runs/sst2 --file reviews.txt --json\n  headwise classify "
            "--model runs/sst2 --measure known:sst2/test",
            "用训练好的分类模型给出每条文本的类别与概率；或度量其准确率。\n\n"
            "  headwise classify --model runs/sst2 'a film worth seeing'\n"
            "  headwise classify --model runs/sst2 --file reviews.txt --json\n"
            "  headwise classify --model runs/sst2 --measure known:sst2/test",
        ),
    )
    add_arguments(parser, ClassifierPath)


def run(arguments: argparse.Namespace) -> int:
    return run_labelling(arguments, tags=False, show=_show)


def _show(answer: "LabelledAnswer") -> None:
    sys.stdout.write(f"{answer.label}\t{answer.probability:.4f}\t{answer.words[0]}\n")
