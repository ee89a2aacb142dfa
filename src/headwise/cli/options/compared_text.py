"""The options that name test sentences for commands which compare translators."""

import argparse

from headwise.cli.options.paths import SentenceFile
from headwise.language import say


def add_compared_text(group: argparse._ActionsContainer) -> None:
    """`--source` and `--reference`; without them the test set of the first model is taken."""
    group.add_argument(
        "--source",
        type=SentenceFile,
        metavar="FILE",
        help=say(
            "text to translate (default: data.test of the first model's recipe)",
            "要翻译的文本（默认：第一个模型配方中的 data.test）",
        ),
    )
    group.add_argument(
        "--reference",
        type=SentenceFile,
        metavar="FILE",
        help=say("its reference translations", "其参考译文"),
    )
