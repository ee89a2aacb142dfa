"""`headwise tag`: gives every word of a sentence a label."""

import argparse
import sys
from typing import TYPE_CHECKING

from headwise.cli.label_commands import add_arguments, check, run_labelling
from headwise.cli.options.model_paths import TaggerPath
from headwise.language import say

__all__ = ["add_parser", "check", "run"]

if TYPE_CHECKING:
    from headwise.tasks.labels.labeller import LabelledAnswer


def add_parser(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "tag",
        help=say("name the tag of each word", "给每个词标注"),
        description=say(
            "Tag each word (words are separated by spaces) with a trained tagger, or measure its "
            "accuracy.\n\n  headwise tag --model runs/tags 'I saw a saw'\n  headwise tag --model "
            "runs/tags --file sentences.txt --json\n  headwise tag --model runs/tags --measure "
            "known:ud-english-ewt/test",
            "用训练好的标注模型给每个词（按空格切分）一个标注；或度量其准确率。\n\n"
            "  headwise tag --model runs/tags 'I saw a saw'\n"
            "  headwise tag --model runs/tags --file sentences.txt --json\n"
            "  headwise tag --model runs/tags --measure known:ud-english-ewt/test",
        ),
    )
    add_arguments(parser, TaggerPath)


def run(arguments: argparse.Namespace) -> int:
    return run_labelling(arguments, tags=True, show=_show)


def _show(answer: "LabelledAnswer") -> None:
    sys.stdout.write(
        " ".join(f"{word}/{tag}" for word, tag in zip(answer.words, answer.labels, strict=True))
        + "\n"
    )
